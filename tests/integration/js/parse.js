// What rss-parser, which ignores namespaces, or feedsmith makes of a feed document on standard input.
import { readFileSync } from "node:fs";
import Parser from "rss-parser";
import { parseFeed } from "feedsmith";

const text = readFileSync(0, "utf8");
const feed = process.argv[2] === "feedsmith" ? parseFeed(text) : await new Parser().parseString(text);
process.stdout.write(JSON.stringify(feed));
