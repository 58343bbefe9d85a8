// xmpp.js: it carries XML, and leaves the stanzas of pubsub to the application.
import { client, xml, jid as parseJid } from "@xmpp/client";
import { ATOM, AUTHORIZATION, COMMANDS, EVENT, Events, INFO, ITEMS, NOTE, OWNER, PUBSUB, RSM, serve, UPDATED, walk } from "./protocol.js";

const events = new Events();
let entity, service, bare;

const titleOf = (item) =>
  item.getChild("note", NOTE)?.getText() ?? item.getChild("entry", ATOM)?.getChildText("title") ?? "";
const payload = (kind, title) =>
  kind === "note"
    ? xml("note", { xmlns: NOTE }, title)
    : xml("entry", { xmlns: ATOM }, xml("title", {}, title), xml("updated", {}, UPDATED));
const form = (type, values) =>
  xml(
    "x",
    { xmlns: "jabber:x:data", type: "submit" },
    xml("field", { var: "FORM_TYPE", type: "hidden" }, xml("value", {}, `${PUBSUB}#${type}`)),
    ...Object.entries(values).map(([name, value]) => xml("field", { var: `pubsub#${name}` }, xml("value", {}, String(value)))),
  );

const get = async (xmlns, ...children) =>
  (await entity.iqCaller.get(xml("pubsub", { xmlns }, ...children), service));
const set = async (xmlns, ...children) =>
  (await entity.iqCaller.set(xml("pubsub", { xmlns }, ...children), service));
const discover = (xmlns, node) => entity.iqCaller.get(xml("query", { xmlns, node }), service);
const readItems = (body) => body.getChild("items").getChildren("item").map((item) => ({ id: item.attrs.id, title: titleOf(item) }));

function readForm(stanza) {
  const fields = stanza.is("message") && stanza.getChild("x", "jabber:x:data")?.getChildren("field");
  const values = Object.fromEntries((fields || []).map((field) => [field.attrs.var, field.getChildText("value")]));
  if (values.FORM_TYPE !== AUTHORIZATION) return;
  events.add({ kind: "request", node: values["pubsub#node"], jid: values["pubsub#subscriber_jid"], subid: values["pubsub#subid"] });
}

function readEvent(stanza) {
  const event = stanza.is("message") && stanza.getChild("event", EVENT);
  if (!event) return;
  for (const kind of ["purge", "delete"]) {
    if (event.getChild(kind)) events.add({ kind, node: event.getChild(kind).attrs.node });
  }
  const items = event.getChild("items");
  for (const item of items?.getChildren("item") ?? [])
    events.add({ kind: "item", node: items.attrs.node, id: item.attrs.id, title: titleOf(item) });
  for (const item of items?.getChildren("retract") ?? [])
    events.add({ kind: "retract", node: items.attrs.node, id: item.attrs.id });
}

async function page(node, { max, after, before }) {
  const limits = [xml("max", {}, String(max))];
  if (after !== undefined) limits.push(xml("after", {}, after));
  if (before !== undefined) limits.push(xml("before", {}, before));
  const body = await get(PUBSUB, xml("items", { node }), xml("set", { xmlns: RSM }, ...limits));
  const found = body.getChild("set", RSM);
  return { items: readItems(body), first: found?.getChildText("first"), last: found?.getChildText("last") };
}

serve({
  async login({ jid, password, host, port, service: address }) {
    const { local, domain } = parseJid(jid);
    service = address;
    entity = client({
      service: `xmpp://${host}:${port}`,
      domain,
      resource: "xmppjs",
      // The library refuses PLAIN without TLS unless the application authenticates by itself.
      credentials: (authenticate) => authenticate({ username: local, password }, "PLAIN"),
    });
    entity.on("error", () => {});
    entity.on("stanza", readEvent);
    entity.on("stanza", readForm);
    const full = await entity.start();
    await entity.send(xml("presence"));
    bare = full.bare().toString();
    return full.toString();
  },
  async info() {
    const query = await discover(INFO);
    return {
      identities: query.getChildren("identity").map(({ attrs }) => [attrs.category, attrs.type]),
      features: query.getChildren("feature").map(({ attrs }) => attrs.var),
    };
  },
  nodes: async () => (await discover(ITEMS)).getChildren("item").map(({ attrs }) => attrs.node),
  commands: async () => (await discover(ITEMS, COMMANDS)).getChildren("item").map(({ attrs }) => attrs.node),
  async create({ node, config }) {
    const children = [xml("create", { node })];
    if (config) children.push(xml("configure", {}, form("node_config", config)));
    const body = await set(PUBSUB, ...children);
    return body?.getChild("create")?.attrs.node ?? node;
  },
  async publish({ node, item_id: id, title, kind, options }) {
    const children = [xml("publish", { node }, xml("item", { id }, payload(kind, title)))];
    if (options) children.push(xml("publish-options", {}, form("publish-options", options)));
    const body = await set(PUBSUB, ...children);
    return body.getChild("publish").getChild("item").attrs.id;
  },
  items: async ({ node, max_items }) => readItems(await get(PUBSUB, xml("items", { node, max_items }))),
  item: async ({ node, item_id: id }) => readItems(await get(PUBSUB, xml("items", { node }, xml("item", { id })))),
  walk: ({ node, ...way }) => walk((position) => page(node, position), way),
  async subscribe({ node }) {
    return (await set(PUBSUB, xml("subscribe", { node, jid: bare }))).getChild("subscription").attrs.subscription;
  },
  async unsubscribe({ node }) {
    await set(PUBSUB, xml("unsubscribe", { node, jid: bare }));
  },
  async subscriptions() {
    const body = await get(PUBSUB, xml("subscriptions"));
    return body.getChild("subscriptions").getChildren("subscription").map(({ attrs }) => [attrs.node, attrs.subscription]);
  },
  event: (wanted) => events.wait(wanted),
  async decide({ node, jid, allow }) {
    const { subid } = await events.wait({ kind: "request", node, jid });
    const answer = form("subscribe_authorization", { subid, node, subscriber_jid: jid, allow });
    await entity.send(xml("message", { to: service }, answer));
  },
  async own_affiliations() {
    const found = (await get(PUBSUB, xml("affiliations"))).getChild("affiliations").getChildren("affiliation");
    return found.map(({ attrs }) => [attrs.node, attrs.affiliation]);
  },
  async retract({ node, item_id: id }) {
    await set(PUBSUB, xml("retract", { node, notify: "true" }, xml("item", { id })));
  },
  async purge({ node }) {
    await set(OWNER, xml("purge", { node }));
  },
  async delete({ node }) {
    await set(OWNER, xml("delete", { node }));
  },
  async config({ node }) {
    const body = await get(OWNER, xml("configure", { node }));
    const fields = body.getChild("configure").getChild("x", "jabber:x:data").getChildren("field");
    return Object.fromEntries(fields.map((field) => [field.attrs.var, field.getChildText("value")]));
  },
  async configure({ node, values }) {
    await set(OWNER, xml("configure", { node }, form("node_config", values)));
  },
  async affiliations({ node }) {
    const body = await get(OWNER, xml("affiliations", { node }));
    const found = body.getChild("affiliations").getChildren("affiliation");
    return Object.fromEntries(found.map(({ attrs }) => [attrs.jid, attrs.affiliation]));
  },
  async affiliate({ node, jid, affiliation }) {
    await set(OWNER, xml("affiliations", { node }, xml("affiliation", { jid, affiliation })));
  },
  async subscribers({ node }) {
    const body = await get(OWNER, xml("subscriptions", { node }));
    const found = body.getChild("subscriptions").getChildren("subscription");
    return Object.fromEntries(found.map(({ attrs }) => [attrs.jid, attrs.subscription]));
  },
});
