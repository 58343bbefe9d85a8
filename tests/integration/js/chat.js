// An ordinary chat client made of xmpp.js: sends messages to the bot one after the other.
// Usage: node chat.js '{"port":..., "domain":"localhost", "username":..., "password":..., "bot":..., "say":["help"]}'
// Prints the messages of the bot as JSON: one for each message that was sent.
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
const settings = JSON.parse(process.argv[2]);
const entity = new Client({ service: `xmpp://127.0.0.1:${settings.port}`, domain: settings.domain });
tcp({ entity });
const middleware = makeMiddleware({ entity });
const streamFeatures = makeFeatures({ middleware });
const caller = iqCaller({ middleware, entity });
iqCallee({ middleware, entity });
plain(makeSasl({ streamFeatures }, { username: settings.username, password: settings.password }));
resourceBinding({ iqCaller: caller, streamFeatures }, "js");
const fail = (error) => {
  console.error(error);
  process.exit(1);
};
entity.on("error", fail);
setTimeout(() => fail(new Error("no answer in 30 s")), 30000).unref();

const answers = [];
const sayNext = () => {
  const text = settings.say[answers.length];
  const message = xml("message", { type: "chat", to: settings.bot, id: `m${answers.length}` }, xml("body", {}, text));
  entity.send(message).catch(fail);
};
entity.on("stanza", (stanza) => {
  const body = stanza.is("message") && stanza.getChildText("body");
  if (!body || !stanza.attrs.from.startsWith(settings.bot)) return;
  const offers = stanza.getChildren("response", "urn:xmpp:tmp:quick-response").map((one) => one.attrs.value);
  answers.push({ type: stanza.attrs.type, body, offers });
  if (answers.length < settings.say.length) return sayNext();
  console.log(JSON.stringify(answers));
  entity.stop().then(() => process.exit(0), fail);
});
entity.on("online", async () => {
  await entity.send(xml("presence"));
  sayNext();
});
entity.start().catch(fail);
