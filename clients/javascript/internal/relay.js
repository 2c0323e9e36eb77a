// Requests through a relay (RFC 9458): sealed for the shuffler's gateway, all of one length, answered sealed.
//
// It stands in the place of fetch, so that what is tried again, and when, stays as it is. Tried again is the same request,
// sealed anew. What a relay says in the clear decides nothing but how long to wait and when to give up.

import { checkUrl } from "./calls.js";
import { insist, ShuffleDPError } from "./errors.js";
import { suite } from "./sealing.js";

const REQUEST = "message/ohttp-req";
const ANSWER = "message/ohttp-res";
const KEY_PROBLEM = "https://iana.org/assignments/http-problem-types#ohttp-key";
const PASSING = new Set([408, 425, 429, 500, 502, 503, 504]);
const FIELDS = ["accept", "authorization", "content-type"];
const [KEM, KDF, AEAD] = [0x0020, 0x0001, 0x0001];
const [STEP, HEAD_BYTES, SECRET_BYTES, MOST_ANSWERED] = [256, 1024, 16, 4 << 20];

const bytes = (text) => new TextEncoder().encode(text);

function joined(...parts) {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let place = 0;
  for (const part of parts) {
    whole.set(part, place);
    place += part.length;
  }
  return whole;
}

/** A length as QUIC writes it, in 1, 2 or 4 bytes. */
function varint(number) {
  if (number < 1 << 6) return Uint8Array.of(number);
  const view = new DataView(new ArrayBuffer(number < 1 << 14 ? 2 : 4));
  if (view.byteLength === 2) view.setUint16(0, number | 0x4000);
  else view.setUint32(0, number + 0x80000000);
  return new Uint8Array(view.buffer);
}

const prefixed = (part) => joined(varint(part.length), part);

/** How long every request of a task is before it is sealed: no report of it is longer. */
export function requestLength({ shufflers, messages, ciphertext_bytes: each }) {
  const longest = shufflers * Math.max(...Object.values(messages)) * each;
  return Math.ceil((longest + HEAD_BYTES) / STEP) * STEP;
}

/** A request as bytes (RFC 9292), padded with zeros to a length. */
export function encodeRequest({ method, url, headers, body }, length) {
  const { protocol, host, pathname, search } = new URL(url);
  const control = [method, protocol.slice(0, -1), host, pathname + search].map((part) => prefixed(bytes(part)));
  const given = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  const lines = FIELDS.filter((name) => name in given).flatMap((name) => [name, given[name]]);
  const fields = joined(...lines.map((part) => prefixed(bytes(part))));
  const whole = joined(varint(0), ...control, prefixed(fields), prefixed(body ?? new Uint8Array()));
  if (whole.length > length) {
    const words = `token and the shuffler's address must fit into ${HEAD_BYTES} bytes`;
    throw new ShuffleDPError(`${words}, as all requests of a task have one length, so nothing was sent.`);
  }
  return joined(whole, new Uint8Array(length - whole.length));
}

/** Status, fields and content of an answer of known length; throws where it is none. */
export function decodeResponse(message) {
  let place = 0;
  const take = (count) => {
    if (count > message.length - place) throw new RangeError("the answer is cut");
    place += count;
    return message.subarray(place - count, place);
  };
  const number = () => {
    const [first] = take(1);
    return take((1 << (first >> 6)) - 1).reduce((high, low) => 256 * high + low, first & 0x3f);
  };
  const part = () => take(number());
  const section = () => (place < message.length ? part() : new Uint8Array());
  if (number() !== 1) throw new RangeError("no answer of known length");
  const status = number();
  if (status < 200 || status > 599) throw new RangeError("no final answer");
  const [lines, content] = [section(), section()];
  const fields = [];
  [message, place] = [lines, 0];
  while (place < message.length) fields.push([part(), part()].map((text) => new TextDecoder().decode(text)));
  return { status, fields, content };
}

/** A gateway's first key for this suite, from the file that everybody is given; one with a mistake is refused whole. */
export function readKeys(file) {
  const wrong = () => new ShuffleDPError("gatewayKeys must be of type application/ohttp-keys, whole, so nothing was sent.");
  if (!(file instanceof Uint8Array)) throw wrong();
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const found = [];
  try {
    for (let place = 0; place < file.length; ) {
      const end = place + 2 + view.getUint16(place);
      if (end > file.length) throw wrong();
      if (view.getUint16(place + 3) === KEM) {
        const [key, pairs] = [file.slice(place + 5, place + 37), view.getUint16(place + 37)];
        if (pairs === 0 || pairs % 4 || place + 39 + pairs !== end) throw wrong();
        for (let pair = place + 39; pair < end; pair += 4) {
          const fits = view.getUint16(pair) === KDF && view.getUint16(pair + 2) === AEAD;
          if (fits) found.push({ number: file[place + 2], key });
        }
      }
      place = end;
    }
  } catch {
    throw wrong();
  }
  if (!found.length) throw new ShuffleDPError("gatewayKeys must have a key for X25519 and AES-128-GCM, so nothing was sent.");
  return found[0];
}

/** A request sealed to a gateway's key, and what opens the answer to it. `ephemeral` is for test vectors. */
export async function sealRequest({ number, key }, request, ephemeral) {
  const header = Uint8Array.of(number, KEM >> 8, KEM & 255, KDF >> 8, KDF & 255, AEAD >> 8, AEAD & 255);
  const recipientPublicKey = await suite.kem.deserializePublicKey(key);
  const info = joined(bytes("message/bhttp request\0"), header);
  const context = await suite.createSenderContext({ recipientPublicKey, info, ekm: ephemeral });
  const enc = new Uint8Array(context.enc);
  const sealed = joined(header, enc, new Uint8Array(await context.seal(request)));
  const open = async (answer) => {
    const secret = await context.export(bytes("message/bhttp response"), SECRET_BYTES);
    const { subtle } = globalThis.crypto;
    const ikm = await subtle.importKey("raw", secret, "HKDF", false, ["deriveBits"]);
    const salt = joined(enc, answer.subarray(0, SECRET_BYTES));
    const derived = (info, bits) => subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt, info: bytes(info) }, ikm, bits);
    const aead = await subtle.importKey("raw", await derived("key", 128), "AES-GCM", false, ["decrypt"]);
    const iv = await derived("nonce", 96);
    return new Uint8Array(await subtle.decrypt({ name: "AES-GCM", iv }, aead, answer.subarray(SECRET_BYTES)));
  };
  return { sealed, open };
}

/** The whole content of an answer, unless it is longer than any gateway's. */
async function contentOf(response) {
  const parts = [];
  let length = 0;
  const reader = response.body?.getReader();
  for (let read = await reader?.read(); read && !read.done; read = await reader.read()) {
    length += read.value.length;
    if (length > MOST_ANSWERED) throw await reader.cancel().then(() => new RangeError("the answer is too long"));
    parts.push(read.value);
  }
  return joined(...parts);
}

/** A refusal in the clear, by the relay or by a gateway that could not open the request, in words of our own. */
function inTheClear(relay, response, content) {
  const ofKey = response.status === 422 || new TextDecoder().decode(content).includes(KEY_PROBLEM);
  const kind = ofKey ? "gateway-key" : "relay";
  const outdated = "the gateway has no such key: get its current keys, which come with the application";
  const away = `the relay answers ${response.status}, so that it, or the gateway behind it, may be away`;
  const look = "check that it is a relay, and that its gateway has keys (`shuffledp keys gateway`) and was started since";
  const strange = `${relay} answers ${response.status} in place of a gateway: ${look}`;
  const detail = ofKey ? outdated : PASSING.has(response.status) ? away : strange;
  const later = response.headers.get("retry-after");
  return new Response(JSON.stringify({ type: `urn:shuffledp:problem:${kind}`, detail }), {
    status: PASSING.has(response.status) ? 503 : response.status,
    headers: later ? { "Retry-After": later } : {},
  });
}

/** A relay, with the key of the gateway behind it; undefined where none is asked for. */
export function relayOf(relay, gatewayKeys) {
  if (relay === undefined && gatewayKeys === undefined) return undefined;
  insist(relay !== undefined && gatewayKeys !== undefined, "relay and gatewayKeys go together: give both or none.");
  return { relay: checkUrl(relay, "relay"), keys: readKeys(gatewayKeys) };
}

/** How a task's shuffler is reached: directly, or through the relay that is named, with requests of the task's length. */
export function carried(calls, routing) {
  if (calls.through === undefined) return calls;
  return { ...calls, fetch: throughRelay(calls.fetch, { ...calls.through, length: requestLength(routing) }) };
}

/** What takes fetch's place: every request goes to the relay, sealed to the gateway's key. */
export function throughRelay(fetch, { relay, keys, length }) {
  return async (url, { method, headers, body, ...rules }) => {
    const { sealed, open } = await sealRequest(keys, encodeRequest({ method, url, headers, body }, length));
    const response = await fetch(relay, { ...rules, method: "POST", headers: { "Content-Type": REQUEST }, body: sealed });
    const content = await contentOf(response);
    const media = (response.headers.get("content-type") ?? "").split(";")[0].trim();
    if (response.status >= 400) return inTheClear(relay, response, content);
    if (response.status !== 200 || media !== ANSWER) throw new RangeError("no relay answers so");
    const answer = decodeResponse(await open(content));
    return new Response(answer.content, { status: answer.status, headers: answer.fields });
  };
}
