// StanzaJS: every call of pubsub is a function of the library, and payloads are JSON.
import stanza from "stanza";
import { ATOM, AUTHORIZATION, Events, NOTE, serve, UPDATED, walk } from "./protocol.js";

const { createClient, JXT } = stanza;
const events = new Events();
let client, service;

const titleOf = (content) => content?.title?.text ?? content?.title ?? content?.text ?? "";
const payload = (kind, title) =>
  kind === "note"
    ? { itemType: NOTE, text: title }
    : { itemType: ATOM, title: { type: "text", text: title }, updated: new Date(UPDATED) };
const form = (type, values) => ({
  type: "submit",
  fields: [
    { name: "FORM_TYPE", type: "hidden", value: `http://jabber.org/protocol/pubsub#${type}` },
    ...Object.entries(values).map(([name, value]) => ({ name: `pubsub#${name}`, value: String(value) })),
  ],
});
const readItems = (found) => (found.items ?? []).map(({ id, content }) => ({ id, title: titleOf(content) }));

serve({
  login({ jid, password, websocket, service: address }) {
    service = address;
    client = createClient({
      jid,
      password,
      transports: { websocket, bosh: false },
      allowResumption: false,
      useStreamManagement: false,
    });
    client.stanzas.define({
      aliases: JXT.pubsubItemContentAliases(),
      element: "note",
      fields: { text: JXT.text() },
      namespace: NOTE,
      type: NOTE,
      typeField: "itemType",
    });
    client.on("pubsub:published", ({ pubsub: { items } }) =>
      items.published.forEach(({ id, content }) => events.add({ kind: "item", node: items.node, id, title: titleOf(content) })),
    );
    client.on("pubsub:retracted", ({ pubsub: { items } }) =>
      items.retracted.forEach((id) => events.add({ kind: "retract", node: items.node, id })),
    );
    client.on("message", ({ forms }) => {
      const values = Object.fromEntries((forms?.[0]?.fields ?? []).map(({ name, value }) => [name, value]));
      if (values.FORM_TYPE === AUTHORIZATION)
        events.add({ kind: "request", node: values["pubsub#node"], jid: values["pubsub#subscriber_jid"], subid: values["pubsub#subid"] });
    });
    client.on("pubsub:purged", ({ pubsub }) => events.add({ kind: "purge", node: pubsub.purge?.node }));
    client.on("pubsub:deleted", ({ pubsub }) => events.add({ kind: "delete", node: pubsub.delete?.node }));
    return new Promise((resolve, reject) => {
      client.on("session:started", (bound) => {
        client.sendPresence();
        resolve(bound ?? client.jid);
      });
      client.on("auth:failed", () => reject(new Error("not authorized")));
      client.on("stream:error", reject);
      client.connect();
    });
  },
  async info() {
    const { identities, features } = await client.getDiscoInfo(service);
    return { identities: identities.map(({ category, type }) => [category, type]), features };
  },
  nodes: async () => (await client.getDiscoItems(service)).items.map(({ node }) => node),
  commands: async () => (await client.getCommands(service)).items.map(({ node }) => node),
  create: async ({ node, config }) =>
    (await client.createNode(service, node, config && form("node_config", config))).node,
  async publish({ node, item_id: id, title, kind, options }) {
    const item = payload(kind, title);
    const answer = options
      ? await client.sendIQ({
          pubsub: {
            context: "user",
            publish: { node, item: { id, content: item } },
            publishOptions: form("publish-options", options),
          },
          to: service,
          type: "set",
        })
      : await client.publish(service, node, item, id);
    return answer.pubsub.publish.item.id;
  },
  items: async ({ node, max_items }) =>
    readItems(await client.getItems(service, node, max_items === undefined ? {} : { max: max_items })),
  async item({ node, item_id: id }) {
    const item = await client.getItem(service, node, id);
    return item ? readItems({ items: [item] }) : [];
  },
  walk: ({ node, ...way }) =>
    walk(async (position) => {
      const answer = await client.getItems(service, node, position);
      return { items: readItems(answer), first: answer.paging?.first, last: answer.paging?.last };
    }, way),
  subscribe: async ({ node }) => (await client.subscribeToNode(service, node)).state,
  subscriptions: async () =>
    ((await client.getSubscriptions(service)).items ?? []).map(({ node, state }) => [node, state]),
  async unsubscribe({ node }) {
    await client.unsubscribeFromNode(service, node);
  },
  event: (wanted) => events.wait(wanted),
  async decide({ node, jid, allow }) {
    const { subid } = await events.wait({ kind: "request", node, jid });
    client.sendMessage({ to: service, forms: [form("subscribe_authorization", { subid, node, subscriber_jid: jid, allow })] });
  },
  async own_affiliations() {
    const { pubsub } = await client.getAffiliations(service);
    return pubsub.affiliations.items.map(({ node, affiliation }) => [node, affiliation]);
  },
  async retract({ node, item_id: id }) {
    await client.retract(service, node, id, true);
  },
  async purge({ node }) {
    await client.purgeNode(service, node);
  },
  async delete({ node }) {
    await client.deleteNode(service, node);
  },
  async config({ node }) {
    const { fields } = await client.getNodeConfig(service, node);
    return Object.fromEntries(fields.map(({ name, value }) => [name, value]));
  },
  async configure({ node, values }) {
    await client.configureNode(service, node, form("node_config", values));
  },
  async affiliations({ node }) {
    const { items } = await client.getNodeAffiliations(service, node);
    return Object.fromEntries((items ?? []).map(({ jid, affiliation }) => [jid, affiliation]));
  },
  async affiliate({ node, jid, affiliation }) {
    await client.updateNodeAffiliations(service, node, [{ jid, affiliation }]);
  },
  async subscribers({ node }) {
    const { pubsub } = await client.getNodeSubscribers(service, node);
    return Object.fromEntries((pubsub.subscriptions.items ?? []).map(({ jid, state }) => [jid, state]));
  },
});
