// A feed client made of xmpp.js: creates a node when told to, subscribes, publishes, pulls page by page, receives a push.
// Usage: node client.js '{"port":..., "domain":"localhost", "username":..., "password":..., "service":..., "node":...,
//   "base":..., "create":true, "publish":[{"id":..., "title":...}], "pageSize":2}'
// Prints one JSON object: what the service answered, as this library has read it.
import core from "@xmpp/client-core";
import iqCallee from "@xmpp/iq/callee.js";
import iqCaller from "@xmpp/iq/caller.js";
import makeMiddleware from "@xmpp/middleware";
import resourceBinding from "@xmpp/resource-binding";
import makeSasl from "@xmpp/sasl";
import plain from "@xmpp/sasl-plain";
import makeFeatures from "@xmpp/stream-features";
import tcp from "@xmpp/tcp";

const { Client, xml } = core;
const PUBSUB = "http://jabber.org/protocol/pubsub";
const EVENT = PUBSUB + "#event";
const RSM = "http://jabber.org/protocol/rsm";
const SHIM = "http://jabber.org/protocol/shim";
const ATOM = "http://www.w3.org/2005/Atom";
const DEADLINE_MS = 30000;

const wanted = JSON.parse(process.argv[2]);

function connect({ domain, port, username, password }) {
  const entity = new Client({ service: `xmpp://127.0.0.1:${port}`, domain });
  tcp({ entity });
  const middleware = makeMiddleware({ entity });
  const streamFeatures = makeFeatures({ middleware });
  const caller = iqCaller({ middleware, entity });
  iqCallee({ middleware, entity });
  plain(makeSasl({ streamFeatures }, { username, password }));
  resourceBinding({ iqCaller: caller, streamFeatures }, "js");
  entity.on("error", (error) => fail(error));
  return { entity, caller };
}

function fail(error) {
  console.error(error);
  process.exit(1);
}

const entry = ({ id, title }) =>
  xml("entry", { xmlns: ATOM }, xml("id", {}, id), xml("title", {}, title), xml("updated", {}, "2011-05-09T02:46:40Z"));

const pubsub = (...children) => xml("pubsub", { xmlns: PUBSUB }, ...children);
const request = (type, ...children) =>
  xml("iq", { type, to: wanted.service }, pubsub(...children));

function readItem(item) {
  const found = item.getChild("entry", ATOM);
  return { id: item.attrs.id, title: found ? found.getChildText("title") : null };
}

function readSet(set) {
  if (!set) return null;
  return { first: set.getChildText("first"), last: set.getChildText("last"), count: Number(set.getChildText("count")) };
}

function readPush(message) {
  const items = message.getChild("event", EVENT).getChild("items");
  const headers = {};
  for (const header of message.getChild("headers", SHIM)?.getChildren("header") ?? [])
    headers[header.attrs.name] = header.getText();
  return { from: message.attrs.from, node: items.attrs.node, items: items.getChildren("item").map(readItem), headers };
}

// All pages from the oldest item on, following the cursors that the service gives.
async function pull(caller) {
  const pages = [];
  let after = "";
  for (;;) {
    const limits = [xml("max", {}, String(wanted.pageSize)), after ? xml("after", {}, after) : null].filter(Boolean);
    const answer = await caller.request(request("get", xml("items", { node: wanted.node }), xml("set", { xmlns: RSM }, ...limits)));
    const body = answer.getChild("pubsub", PUBSUB);
    const page = { items: body.getChild("items").getChildren("item").map(readItem), set: readSet(body.getChild("set", RSM)) };
    if (page.items.length === 0 || !page.set) return pages;
    pages.push(page);
    after = page.set.last;
  }
}

async function main() {
  const { entity, caller } = connect(wanted);
  const pushes = [];
  let pushed = () => {};
  entity.on("stanza", (stanza) => {
    if (stanza.is("message") && stanza.getChild("event", EVENT)?.getChild("items")) {
      pushes.push(readPush(stanza));
      pushed();
    }
  });
  const online = new Promise((resolve) => entity.once("online", resolve));
  await entity.start();
  const address = (await online).bare().toString();
  await entity.send(xml("presence"));

  if (wanted.create) await caller.request(request("set", xml("create", { node: wanted.base })));
  const subscribed = await caller.request(request("set", xml("subscribe", { node: wanted.node, jid: address })));
  const published = [];
  for (const one of wanted.publish) {
    const answer = await caller.request(
      request("set", xml("publish", { node: wanted.base }, xml("item", { id: one.id }, entry(one)))),
    );
    published.push(answer.getChild("pubsub", PUBSUB).getChild("publish").getChild("item").attrs.id);
  }
  while (pushes.length < wanted.publish.length) await new Promise((resolve) => (pushed = resolve));
  const pages = await pull(caller);

  const subscription = subscribed.getChild("pubsub", PUBSUB).getChild("subscription").attrs;
  console.log(JSON.stringify({ jid: address, subscription, published, pushes, pages }));
  await entity.stop();
}

setTimeout(() => fail(new Error("nothing more came before the deadline")), DEADLINE_MS).unref();
main().then(() => process.exit(0), fail);
