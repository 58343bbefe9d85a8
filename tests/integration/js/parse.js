// What rss-parser, which ignores namespaces, makes of a feed document on standard input.
import { readFileSync } from "node:fs";
import Parser from "rss-parser";

const feed = await new Parser().parseString(readFileSync(0, "utf8"));
const items = feed.items.map((item) => ({
  id: item.guid ?? item.id,
  title: item.title,
  link: item.link ?? "",
  author: item.author ?? item.creator ?? "",
}));
process.stdout.write(JSON.stringify({ title: feed.title, link: feed.link, items }));
