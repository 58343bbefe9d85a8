// The subscriber of the package pubsubhubbub: subscribes to a topic, prints what happens as JSON lines.
// Usage: node hub.js PORT TOPIC HUB
import pubSubHubbub from "pubsubhubbub";

const [port, topic, hub] = process.argv.slice(2);
const say = (event, more) => console.log(JSON.stringify({ event, ...more }));
const subscriber = pubSubHubbub.createServer({ callbackUrl: `http://127.0.0.1:${port}/callback`, leaseSeconds: 7200 });

subscriber.on("subscribe", (data) => say("subscribe", { topic: data.topic, lease: data.lease }));
subscriber.on("unsubscribe", (data) => say("unsubscribe", { topic: data.topic }));
subscriber.on("denied", (data) => say("denied", { topic: data.topic }));
subscriber.on("error", (error) => say("error", { text: String(error) }));
subscriber.on("feed", (data) => say("feed", { topic: data.topic, hub: data.hub, body: data.feed.toString() }));
subscriber.on("listen", () => subscriber.subscribe(topic, hub, (error) => error && say("failed", { text: String(error) })));
subscriber.listen(Number(port));
process.stdin.on("end", () => process.exit(0)).resume();
