// Through a relay: the example of RFC 9458, appendix A, what a relay sees, and what it cannot do.

import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeResponse, encodeRequest, readKeys, sealRequest } from "../internal/relay.js";
import { recipients, suite } from "../internal/sealing.js";
import { fromHex, readTask, toHex } from "../internal/task.js";
import { Client, Device, memoryOutbox } from "../shuffledp.js";
import { problem, Shuffler, TASKS } from "../testing/worlds.js";

const CONFIG = fromHex("01002031e1f05a740102115220e9af918f738674aec95f54db6e04eb705aae8e79815500080001000100010003");
const FILE = Uint8Array.of(0, CONFIG.length, ...CONFIG);
const SECRET = fromHex("3c168975674b2fa8e465970b79c8dcf09f1c741626480bd4c6162fc5b6a98e1a");
const EPHEMERAL = fromHex("bc51d5e930bda26589890ac7032f70ad12e4ecb37abb1b65b1256c9c48999c73");
const REQUEST = "00034745540568747470730b6578616d706c652e636f6d012f";
const SEALED_REQUEST =
  "010020000100014b28f881333e7c164ffc499ad9796f877f4e1051ee6d31bad19dec96c208b472" +
  "6374e469135906992e1268c594d2a10c695d858c40a026e7965e7d86b83dd440b2c0185204b4d63525";
const SEALED_ANSWER = "c789e7151fcba46158ca84b04464910d86f9013e404feea014e7be4a441f234f857fbd";
const URL_OF_RELAY = "http://127.0.0.1:2/";
const SEALED = { "content-type": "message/ohttp-res" };

/** A key pair of the suite from 32 private bytes. */
async function keyPair(raw) {
  const pkcs8 = new Uint8Array([...fromHex("302e020100300506032b656e04220420"), ...raw]);
  const privateKey = await crypto.subtle.importKey("pkcs8", pkcs8, "X25519", true, ["deriveBits"]);
  const { x } = await crypto.subtle.exportKey("jwk", privateKey);
  return { privateKey, publicKey: await suite.kem.deserializePublicKey(Buffer.from(x, "base64url")) };
}

test("the example of the RFC", async () => {
  const keys = readKeys(FILE);
  assert.equal(keys.number, 1);
  const asked = { method: "GET", url: "https://example.com", headers: {} };
  const padded = toHex(encodeRequest(asked, 64));
  assert.equal(padded, REQUEST.padEnd(128, "0"));
  const { sealed, open } = await sealRequest(keys, fromHex(REQUEST), await keyPair(EPHEMERAL));
  assert.equal(toHex(sealed), SEALED_REQUEST);
  const answer = await open(fromHex(SEALED_ANSWER));
  assert.equal(toHex(answer), "0140c8");
  assert.deepEqual({ ...decodeResponse(answer), content: undefined }, { status: 200, fields: [], content: undefined });
  await assert.rejects(open(fromHex(SEALED_ANSWER.slice(0, -2))));
  await assert.rejects(open(fromHex(`00${SEALED_ANSWER.slice(2)}`)));
});

test("keys that cannot be read are refused whole", () => {
  const cut = FILE.subarray(0, FILE.length - 1);
  for (const wrong of [cut, FILE.subarray(2), Uint8Array.of(...FILE, 0), Uint8Array.of(0, 2, 1, 2), "text", undefined]) {
    assert.throws(() => readKeys(wrong), /gatewayKeys must be of type application\/ohttp-keys, whole/);
  }
  const other = Uint8Array.of(0, 5, 9, 0, 0x10, 1, 2);
  assert.deepEqual(readKeys(Uint8Array.of(...other, ...FILE)), readKeys(FILE), "a key of another kind is passed over");
  assert.throws(() => readKeys(other), /must have a key for X25519/);
  assert.throws(() => readKeys(new Uint8Array()), /must have a key for X25519/);
});

/** A gateway in front of a shuffler in this process, and the relay before it: `twist` may answer instead. */
class Gateway {
  constructor(shuffler, twist = () => undefined) {
    Object.assign(this, { shuffler, twist, posted: [], inside: [], answers: [] });
  }

  async fetch(url, { method, headers, body }) {
    this.posted.push({ url, method, headers, body });
    const twisted = await this.twist(this.posted.length - 1, this);
    if (twisted !== undefined) return twisted;
    const answer = await this.answer(body);
    this.answers.push(answer);
    return new Response(answer, { status: 200, headers: SEALED });
  }

  async answer(body) {
    const { privateKey } = await keyPair(SECRET);
    const info = new Uint8Array([...new TextEncoder().encode("message/bhttp request\0"), ...body.slice(0, 7)]);
    const enc = body.slice(7, 39);
    const context = await suite.createRecipientContext({ recipientKey: privateKey, enc, info });
    const inner = decoded(new Uint8Array(await context.open(body.slice(39))));
    this.inside.push(inner);
    const { method, path, fields, content } = inner;
    const given = content.length ? content : undefined;
    const response = await this.shuffler.fetch(`http://127.0.0.1:1${path}`, { method, headers: fields, body: given });
    const plain = new Uint8Array(4096);
    const text = Buffer.from(await response.text());
    plain.set([1, 0x40 | (response.status >> 8), response.status & 255, 0, 0x40 | (text.length >> 8), text.length & 255]);
    plain.set(text, 6);
    const nonce = crypto.getRandomValues(new Uint8Array(16));
    const secret = await context.export(new TextEncoder().encode("message/bhttp response"), 16);
    const ikm = await crypto.subtle.importKey("raw", secret, "HKDF", false, ["deriveBits"]);
    const law = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array([...enc, ...nonce]) };
    const key = await crypto.subtle.deriveBits({ ...law, info: new TextEncoder().encode("key") }, ikm, 128);
    const iv = await crypto.subtle.deriveBits({ ...law, info: new TextEncoder().encode("nonce") }, ikm, 96);
    const aead = await crypto.subtle.importKey("raw", key, "AES-GCM", false, ["encrypt"]);
    const ct = new Uint8Array(await crypto.subtle.encrypt({ name: "AES-GCM", iv }, aead, plain));
    return new Uint8Array([...nonce, ...ct]);
  }

  async client({ outbox = memoryOutbox(), patience = 60 } = {}) {
    const task = await readTask(this.shuffler.task.text, this.shuffler.task.id);
    const through = { relay: URL_OF_RELAY, keys: readKeys(FILE) };
    const [fetch, pause] = [this.fetch.bind(this), async () => {}];
    const calls = { url: "https://shuffler.example", token: "secret", patience, fetch, pause, through };
    return new Client(task, await recipients(task.keys), calls, outbox);
  }
}

/** A request as a gateway reads it. */
function decoded(message) {
  let place = 0;
  const number = () => {
    const first = message[place];
    const size = 1 << (first >> 6);
    const bytes = message.subarray(place, place + size);
    place += size;
    return bytes.slice(1).reduce((high, low) => 256 * high + low, first & 0x3f);
  };
  const part = () => {
    const length = number();
    place += length;
    return message.subarray(place - length, place);
  };
  const text = () => new TextDecoder().decode(part());
  assert.equal(number(), 0);
  const [method, scheme, authority, path] = [text(), text(), text(), text()];
  const end = number() + place;
  const fields = {};
  while (place < end) fields[text()] = text();
  const content = part();
  assert.ok(message.subarray(place).every((byte) => byte === 0));
  return { method, scheme, authority, path, fields, content };
}

for (const name of ["coins", "counter", "coins-of-few"]) {
  test(`a relay sees one length and no field but the media type: ${name}`, async () => {
    const gateway = new Gateway(new Shuffler(name));
    const client = await gateway.client();
    await client.report(1);
    await client.report(0);
    const { posted, inside } = gateway;
    assert.deepEqual(inside.map(({ method }) => method), ["POST", "PUT", "POST", "PUT"]);
    assert.deepEqual(inside[1].fields, {
      accept: "application/json",
      authorization: "Bearer secret",
      "content-type": "application/octet-stream",
    });
    assert.equal(inside[0].authority, "shuffler.example");
    const { shufflers, messages, ciphertext_bytes: each } = JSON.parse(TASKS[name].text).routing;
    const least = shufflers * Math.max(...Object.values(messages)) * each + 1024 + 55;
    assert.equal(new Set(posted.map(({ body }) => body.length)).size, 1);
    assert.ok(posted[0].body.length >= least && posted[0].body.length < least + 256);
    assert.deepEqual(new Set(posted.map((each) => each.url)), new Set([URL_OF_RELAY]));
    for (const { method, headers } of posted) {
      assert.deepEqual({ method, headers }, { method: "POST", headers: { "Content-Type": "message/ohttp-req" } });
    }
    assert.equal(new Set(posted.map(({ body }) => toHex(body.slice(7, 39)))).size, 4);
  });
}

for (const [what, twist] of [
  ["drops", () => Promise.reject(new TypeError("fetch failed"))],
  ["acknowledges in the clear", () => new Response('{"new":true}', { status: 201 })],
  ["seals nothing", () => new Response('{"new":true}', { status: 200, headers: SEALED })],
  ["repeats another answer", (_, { answers }) => new Response(answers[0], { status: 200, headers: SEALED })],
  ["cuts the answer", async (at, own) => new Response((await own.answer(own.posted[at].body)).slice(0, -1), { headers: SEALED })],
  ["loses the answer", async (at, own) => own.answer(own.posted[at].body).then(() => Promise.reject(new TypeError("lost")))],
  ["never ends", () => new Response(new Uint8Array(5 << 20), { status: 200, headers: SEALED })],
  ["is busy", () => problem(429, "too-many", { "Retry-After": "0" })],
]) {
  test(`a relay that ${what}: the same report, sealed anew`, async () => {
    const gateway = new Gateway(new Shuffler("coins"), (at, own) => (at === 1 || at === 2 ? twist(at, own) : undefined));
    const client = await gateway.client();
    assert.deepEqual((await client.report(1)).reports, 1);
    assert.equal(gateway.posted.length, 4);
    const puts = gateway.inside.filter(({ method }) => method === "PUT").map(({ path, content }) => path + toHex(content));
    assert.equal(new Set(puts).size, 1);
    assert.equal(gateway.shuffler.reports.size, 1);
    assert.equal(new Set(gateway.posted.map(({ body }) => toHex(body.slice(7, 39)))).size, 4);
  });
}

for (const [status, kind] of [[410, "relay"], [403, "relay"], [422, "gateway-key"]]) {
  test(`a relay that says seat-gone in the clear with ${status} has nothing randomized again`, async () => {
    const outbox = memoryOutbox();
    const gateway = new Gateway(new Shuffler("coins"), (at) => (at === 1 ? problem(status, "seat-gone") : undefined));
    const client = await gateway.client({ outbox });
    await assert.rejects(client.report(1), (error) => error.kind === kind && !error.message.includes("seat-gone"));
    assert.equal((await outbox.waiting(gateway.shuffler.task.id)).length, 1);
    assert.deepEqual(await client.flush(), { reports: 1, new: 1, refused: 0 });
    assert.equal(gateway.shuffler.seats, 1);
  });
}

test("a relay that is away is named, and what to look at where it is none", async () => {
  const away = new Gateway(new Shuffler("coins"), () => Promise.reject(new TypeError("fetch failed")));
  const named = new RegExp(`\\(through the relay ${URL_OF_RELAY}\\) cannot be reached`);
  await assert.rejects((await away.client({ patience: 0 })).report(1), named);
  const behind = new Gateway(new Shuffler("coins"), () => problem(502, "gateway-away"));
  await assert.rejects((await behind.client({ patience: 0 })).report(1), /or the gateway behind it, may be away/);
  const none = new Gateway(new Shuffler("coins"), () => problem(404, "not-found"));
  await assert.rejects((await none.client()).report(1), /answers 404 in place of a gateway: check that it is a relay/);
});

test("what cannot be is refused before anything is sent", async () => {
  const asked = { taskId: TASKS.coins.id, task: TASKS.coins.text, shuffler: "https://shuffler.example", token: "t" };
  await assert.rejects(Client.open({ ...asked, relay: URL_OF_RELAY }), /relay and gatewayKeys go together/);
  await assert.rejects(Client.open({ ...asked, gatewayKeys: FILE }), /relay and gatewayKeys go together/);
  await assert.rejects(Client.open({ ...asked, relay: "http://relay.example", gatewayKeys: FILE }), /relay must be https/);
  await assert.rejects(Client.open({ ...asked, relay: URL_OF_RELAY, gatewayKeys: new Uint8Array(3) }), /gatewayKeys must/);
  await assert.rejects(Device.open({ ...asked, analyzer: asked.shuffler, relay: URL_OF_RELAY }), /relay and gatewayKeys go/);
  const long = { method: "PUT", url: "https://a.example/", headers: { authorization: "x".repeat(2000) } };
  assert.throws(() => encodeRequest(long, 1280), /must fit into 1024 bytes/);
});
