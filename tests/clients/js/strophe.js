// Strophe.js with its pubsub plugin. What the plugin lacks is built with Strophe's builder, as applications do.
import { createRequire } from "node:module";
import { ATOM, AUTHORIZATION, COMMANDS, EVENT, Events, INFO, ITEMS, NOTE, OWNER, PUBSUB, RSM, serve, UPDATED, walk } from "./protocol.js";

// The plugin is CommonJS, and must meet the same instance of Strophe.
const require = createRequire(import.meta.url);
const { $build, $iq, $msg, $pres, Strophe } = require("strophe.js");
require("strophejs-plugin-pubsub");

const events = new Events();
let connection, service;

const children = (element, name) => [...element.getElementsByTagName(name)];
const child = (element, name) => children(element, name)[0];
const attributes = (element, ...names) => names.map((name) => element.getAttribute(name));
const readItem = (item) => {
  const text = child(item, "note") ?? child(item, "title");
  return { id: item.getAttribute("id"), title: text?.textContent ?? "" };
};
const readItems = (answer) => children(answer, "item").map(readItem);
const request = (iq) => new Promise((resolve, reject) => connection.sendIQ(iq.tree(), resolve, reject)).catch(fail);
const get = (xmlns) => $iq({ to: service, type: "get" }).c("pubsub", { xmlns });
const set = (xmlns) => $iq({ to: service, type: "set" }).c("pubsub", { xmlns });

function fail(answer) {
  throw new Error(answer ? Strophe.serialize(answer) : "no answer");
}

// Functions of the plugin call back with the result or with the error.
const call = (name, ...values) =>
  new Promise((resolve) => connection.pubsub[name](...values, resolve)).then((answer) =>
    answer.getAttribute("type") === "error" ? fail(answer) : answer,
  );

function payload(kind, title) {
  if (kind === "note") return $build("note", { xmlns: NOTE }).t(title).tree();
  return $build("entry", { xmlns: ATOM }).c("title", {}, title).c("updated", {}, UPDATED).tree();
}

function readEvent(message) {
  const event = child(message, "event");
  if (event?.getAttribute("xmlns") !== EVENT) return true;
  for (const kind of ["purge", "delete"])
    for (const found of children(event, kind)) events.add({ kind, node: found.getAttribute("node") });
  const node = child(event, "items")?.getAttribute("node");
  for (const item of children(event, "item")) events.add({ kind: "item", node, ...readItem(item) });
  for (const item of children(event, "retract")) events.add({ kind: "retract", node, id: item.getAttribute("id") });
  return true;
}

const readFields = (form) =>
  Object.fromEntries(children(form, "field").map((one) => [one.getAttribute("var"), child(one, "value")?.textContent ?? null]));

function readForm(message) {
  const values = readFields(message);
  if (values.FORM_TYPE === AUTHORIZATION)
    events.add({ kind: "request", node: values["pubsub#node"], jid: values["pubsub#subscriber_jid"], subid: values["pubsub#subid"] });
  return true;
}

async function page(node, { max, after, before }) {
  const iq = get(PUBSUB).c("items", { node }).up().c("set", { xmlns: RSM }).c("max", {}, String(max));
  if (after !== undefined) iq.c("after", {}, after);
  if (before !== undefined) iq.c("before", {}, before);
  const answer = await request(iq);
  return { items: readItems(answer), first: child(answer, "first")?.textContent, last: child(answer, "last")?.textContent };
}

serve({
  login({ jid, password, websocket, service: address }) {
    service = address;
    connection = new Strophe.Connection(websocket);
    return new Promise((resolve, reject) =>
      connection.connect(jid, password, (status, condition) => {
        if (status === Strophe.Status.CONNECTED) {
          connection.pubsub.connect(connection.jid, service);
          connection.addHandler(readEvent, null, "message");
          connection.addHandler(readForm, null, "message");
          connection.send($pres());
          resolve(connection.jid);
        } else if ([Strophe.Status.AUTHFAIL, Strophe.Status.CONNFAIL, Strophe.Status.ERROR].includes(status)) {
          reject(new Error(String(condition)));
        }
      }),
    );
  },
  async info() {
    const answer = await request($iq({ to: service, type: "get" }).c("query", { xmlns: INFO }));
    return {
      identities: children(answer, "identity").map((one) => attributes(one, "category", "type")),
      features: children(answer, "feature").map((one) => one.getAttribute("var")),
    };
  },
  async nodes() {
    const answer = await new Promise((resolve, reject) => connection.pubsub.discoverNodes(resolve, reject)).catch(fail);
    return children(answer, "item").map((one) => one.getAttribute("node"));
  },
  async commands() {
    const answer = await request($iq({ to: service, type: "get" }).c("query", { xmlns: ITEMS, node: COMMANDS }));
    return children(answer, "item").map((one) => one.getAttribute("node"));
  },
  async create({ node, config }) {
    const options = config && Object.fromEntries(Object.entries(config).map(([name, value]) => [`pubsub#${name}`, String(value)]));
    const answer = await call("createNode", node, options);
    return child(answer, "create")?.getAttribute("node") ?? node;
  },
  async publish({ node, item_id: id, title, kind, options }) {
    const item = { attrs: { id }, data: payload(kind, title) };
    if (!options) return child(await call("publish", node, [item]), "item").getAttribute("id");
    const values = Object.fromEntries(Object.entries(options).map(([name, value]) => [`pubsub#${name}`, String(value)]));
    const iq = set(PUBSUB).c("publish", { node }).list("item", [item]).up().c("publish-options");
    return child(await request(iq.form(PUBSUB + "#publish-options", values)), "item").getAttribute("id");
  },
  async items({ node, max_items }) {
    if (max_items !== undefined) return readItems(await request(get(PUBSUB).c("items", { node, max_items })));
    return readItems(await new Promise((resolve, reject) => connection.pubsub.items(node, resolve, reject)).catch(fail));
  },
  item: async ({ node, item_id: id }) => readItems(await request(get(PUBSUB).c("items", { node }).c("item", { id }))),
  walk: ({ node, ...way }) => walk((position) => page(node, position), way),
  async subscribe({ node }) {
    const answer = await new Promise((resolve, reject) =>
      connection.pubsub.subscribe(node, undefined, () => true, resolve, reject, true),
    ).catch(fail);
    return child(answer, "subscription").getAttribute("subscription");
  },
  async subscriptions() {
    const answer = await call("getSubscriptions");
    return children(answer, "subscription").map((one) => attributes(one, "node", "subscription"));
  },
  async unsubscribe({ node }) {
    await new Promise((resolve, reject) =>
      connection.pubsub.unsubscribe(node, Strophe.getBareJidFromJid(connection.jid), undefined, resolve, reject),
    ).catch(fail);
  },
  event: (wanted) => events.wait(wanted),
  async decide({ node, jid, allow }) {
    const { subid } = await events.wait({ kind: "request", node, jid });
    const values = { subid, node, subscriber_jid: jid, allow: String(allow) };
    const fields = Object.fromEntries(Object.entries(values).map(([name, value]) => [`pubsub#${name}`, value]));
    connection.send($msg({ to: service }).form(AUTHORIZATION, fields).tree());
  },
  async own_affiliations() {
    const answer = await call("getAffiliations");
    return children(answer, "affiliation").map((one) => attributes(one, "node", "affiliation"));
  },
  async retract({ node, item_id: id }) {
    await request(set(PUBSUB).c("retract", { node, notify: "true" }).c("item", { id }));
  },
  async purge({ node }) {
    await request(set(OWNER).c("purge", { node }));
  },
  async delete({ node }) {
    await call("deleteNode", node);
  },
  async config({ node }) {
    const answer = await call("getConfig", node);
    return readFields(answer);
  },
  async configure({ node, values }) {
    const fields = Object.fromEntries(Object.entries(values).map(([name, value]) => [`pubsub#${name}`, String(value)]));
    await request(set(OWNER).c("configure", { node }).form(PUBSUB + "#node_config", fields));
  },
  async affiliations({ node }) {
    const answer = await call("getAffiliations", node);
    return Object.fromEntries(children(answer, "affiliation").map((one) => attributes(one, "jid", "affiliation")));
  },
  async affiliate({ node, jid, affiliation }) {
    await call("setAffiliation", node, jid, affiliation);
  },
  async subscribers({ node }) {
    const answer = await call("getNodeSubscriptions", node);
    return Object.fromEntries(children(answer, "subscription").map((one) => attributes(one, "jid", "subscription")));
  },
});
