// How the test talks to a client in JavaScript: as drivers/protocol.py describes.
import { createInterface } from "node:readline";

export const ATOM = "http://www.w3.org/2005/Atom";
export const NOTE = "urn:example:note";
export const UPDATED = "2026-01-02T03:04:05Z";
export const PUBSUB = "http://jabber.org/protocol/pubsub";
export const OWNER = PUBSUB + "#owner";
export const EVENT = PUBSUB + "#event";
export const AUTHORIZATION = PUBSUB + "#subscribe_authorization";
export const RSM = "http://jabber.org/protocol/rsm";
export const INFO = "http://jabber.org/protocol/disco#info";
export const ITEMS = "http://jabber.org/protocol/disco#items";
export const COMMANDS = "http://jabber.org/protocol/commands";

// The library has no such function.
export class Missing extends Error {}

export class Events {
  #events = [];
  #waiting = [];

  add(event) {
    this.#events.push(event);
    this.#waiting = this.#waiting.filter(({ wanted, resolve }) => !this.#settle(wanted, resolve));
  }

  wait(wanted) {
    return new Promise((resolve) => {
      if (!this.#settle(wanted, resolve)) this.#waiting.push({ wanted, resolve });
    });
  }

  #settle(wanted, resolve) {
    const event = this.#events.find((one) => Object.entries(wanted).every(([key, value]) => one[key] === value));
    if (event) resolve(event);
    return Boolean(event);
  }
}

const write = (answer) => process.stdout.write(JSON.stringify(answer) + "\n");

function describe(error) {
  if (error instanceof Error) return `${error.name}: ${error.message}`;
  return typeof error === "string" ? error : JSON.stringify(error);
}

async function answer(calls, { id, call, arguments: values }) {
  try {
    if (!calls[call]) throw new Missing("no such function");
    write({ id, result: (await calls[call](values)) ?? null });
  } catch (error) {
    write(error instanceof Missing ? { id, missing: error.message } : { id, error: describe(error) });
  }
}

// Runs the calls that arrive until standard input ends. `calls` has a function for each call.
export function serve(calls) {
  createInterface({ input: process.stdin })
    .on("line", (line) => answer(calls, JSON.parse(line)))
    .on("close", () => process.exit(0));
}

// Pages of ids by result sets, as XEP-0059 2.2 and 2.3 tell a client to read them. `page({max, after, before})`
// returns { items, first, last }.
export async function walk(page, { size, back }) {
  const pages = [];
  let position = back ? { before: "" } : { after: "" };
  for (;;) {
    const { items, first, last } = await page({ max: size, ...position });
    if (items.length === 0) return pages;
    pages.push(items.map(({ id }) => id));
    if (!first || !last) return pages;
    position = back ? { before: first } : { after: last };
  }
}
