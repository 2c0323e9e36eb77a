// Hostile servers and tasks: each is refused in one sentence, and nothing is sent.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { Client } from "../shuffledp.js";
import { refused, Shuffler, TASKS } from "../testing/worlds.js";

/** Opening a task whose text was changed; with `matching`, under the id that the changed text has. */
function opened(name, change, { matching = true, more = {} } = {}) {
  const document = JSON.parse(TASKS[name].text);
  change(document);
  const task = JSON.stringify(document);
  const taskId = matching ? createHash("sha256").update(task).digest("hex") : TASKS[name].id;
  return Client.open({ taskId, task, shuffler: "http://127.0.0.1:1", token: "t", ...more });
}

const KEY = "A".repeat(43) + "=";
const ISSUER = { token_type: 2, name: "issuer.example", token_key: "AAAA" };

function issued(task, issuer) {
  task.routing.issuer = issuer;
  task.routing.version = task.version = 4;
}

test("a text that does not hash to the id", () => refused(() => opened("coins", () => {}, { matching: false }), /SHA-256/));

test("a text whose key was replaced does not have the id", () =>
  refused(
    () => opened("coins", (task) => (task.public_key = KEY.replace("A", "B")), { matching: false }),
    /SHA-256/,
  ));

for (const [what, name, change, words] of [
  ["another version", "coins", (task) => (task.version = 3), /version must be 1/],
  ["an issuer in an old version", "coins", (task) => (task.routing.issuer = ISSUER), /version must be 4/],
  ["an issuer of another type", "coins", (task) => issued(task, { ...ISSUER, token_type: 1 }), /issuer must be of type 2/],
  ["an issuer, and keys that expire, of which none does", "coins", (task) => (issued(task, ISSUER), (task.expires = {})), /expires must be last days/],
  ["a last day of another key", "coins", (task) => ((task.version = 3), (task.expires = { [KEY]: "2999-12-31" })), /expires must be last days/],
  ["a last day that is none", "coins", (task) => ((task.version = 3), (task.expires = { [task.public_key]: "2999-13-31" })), /expires must be last days/],
  ["last days in a version without them", "coins", (task) => (task.expires = { [task.public_key]: "2999-12-31" }), /version must be 3/],
  ["an issuer that is none", "coins", (task) => issued(task, null), /issuer must be of type 2/],
  ["a role's token where an issuer's is needed", "coins", (task) => issued(task, ISSUER), /token must be a Uint8Array/],
  ["another suite", "coins", (task) => (task.suite = "rot13"), /suite must be/],
  ["a key of another length", "coins", (task) => (task.public_key = "AAAA"), /public_key must be 32 bytes/],
  ["a key to which everybody has the secret", "coins", (task) => (task.public_key = KEY), /public_key must be a key/],
  ["a hop with the analyzer's key", "coins-of-few", (task) => (task.hops[1].public_key = task.public_key), /different keys/],
  ["one hop only", "coins-of-few", (task) => task.hops.pop(), /hops must be 2 or 3/],
  ["layers that are not the hops", "coins-of-few", (task) => (task.routing.layers = 1), /layers/],
  ["a layer that is not said", "coins", (task) => (task.hops = []), /version must be 2/],
  ["an unknown method", "coins", (task) => (task.plan.method = "trust-me"), /unknown to this client/],
  ["a method by the name of a member of every object", "coins", (task) => (task.plan.protocol = "__proto__"), /unknown/],
  ["an unknown protocol", "coins", (task) => (task.plan.protocol = "plain"), /unknown to this client/],
  ["another schema", "coins", (task) => (task.plan.schema = 2), /schema must be 1/],
  ["coins that are always 0", "coins", (task) => (task.plan.noise.probability = 0), /probability must be/],
  ["coins that are more than likely", "coins", (task) => (task.plan.noise.probability = 0.7), /probability must be/],
  ["no coins", "coins", (task) => (task.plan.noise.bits_per_user = 0), /noise must be/],
  ["no rate", "poisson-bits", (task) => (task.plan.noise.rate = 0), /rate must be/],
  ["a rate that no device can draw", "poisson-bits", (task) => (task.plan.noise.rate = 1e300), /rate must be/],
  ["a rate that is no number", "poisson-bits", (task) => (task.plan.noise.rate = "85"), /rate must be/],
  ["no noise", "decoys", (task) => (task.plan.noise = null), /noise must be/],
  ["an honest part above all", "coins", (task) => (task.plan.honest_fraction = 2), /honest_fraction must be/],
  ["a routing of more people than the plan", "coins", (task) => (task.routing.users = 10 ** 6), /routing.users/],
  ["a routing of smaller slots", "coins", (task) => (task.routing.slot_users = 1), /routing must be the plan's/],
  ["windows", "counter", (task) => (task.routing.windows = true), /routing must be the plan's/],
  ["another budget", "counter", (task) => (task.routing.budget = 9), /routing must be the plan's/],
  ["slots without batches of their own", "counter", (task) => (task.routing.every_slot = false), /routing must be/],
  ["an odd number of coins", "counter", (task) => (task.plan.noise.coins = 3), /even number/],
  ["ciphertexts of another length", "coins", (task) => (task.routing.ciphertext_bytes = 78), /ciphertext_bytes/],
]) {
  test(`a task with ${what}`, () => refused(() => opened(name, change), words));
}

test("a text that is no JSON", () => {
  const taskId = createHash("sha256").update("{").digest("hex");
  return refused(() => Client.open({ taskId, task: "{", shuffler: "http://localhost", token: "t" }), /JSON object/);
});

for (const [what, url, words] of [
  ["plain HTTP to another machine", "http://shuffler.example", /must be https/],
  ["no address", "shuffler", /must be an address/],
  ["a password in it", "https://me:you@shuffler.example", /must be an address/],
]) {
  test(`an address with ${what}`, () =>
    refused(() => Client.open({ taskId: TASKS.coins.id, task: TASKS.coins.text, shuffler: url, token: "t" }), words));
}

const seatWith = (change) => (request, shuffler) => {
  if (!request.path.endsWith("/seats")) return undefined;
  const seat = shuffler.seat();
  change(seat);
  return new Response(JSON.stringify({ seats: [seat] }), { status: 201 });
};

for (const [what, name, change] of [
  ["a batch of one", "coins", (seat) => Object.assign(seat.batches[0], { size: 1, batch_id: "1.0.1", seat: 0 })],
  ["a batch of one that is named so", "counter", (seat) => Object.assign(seat.batches[0], { size: 1 })],
  ["a larger batch, in which everybody adds less", "counter", (seat) => Object.assign(seat.batches[0], { size: 450 })],
  ["fewer messages", "counter", (seat) => Object.assign(seat.batches[0], { messages: 1 })],
  ["a batch left out", "counter", (seat) => seat.batches.pop()],
  ["no batches", "coins", (seat) => (seat.batches = [])],
  ["one batch twice", "counter", (seat) => seat.batches.push(seat.batches[0])],
  ["a place after the last", "coins", (seat) => (seat.batches[0].seat = 2000)],
  ["a place before the first", "coins", (seat) => (seat.batches[0].seat = -1)],
  ["another batch", "counter", (seat) => (seat.batches[0].batch_id = "1.7.8")],
  ["batches that are no list", "coins", (seat) => (seat.batches = "all")],
  ["an id that is none", "coins", (seat) => (seat.seat = "../../admin")],
  ["a lease that is over", "coins", (seat) => (seat.lease_seconds = 0)],
]) {
  test(`a seat with ${what}`, async () => {
    const shuffler = new Shuffler(name, seatWith(change));
    const client = await shuffler.client();
    await refused(() => client.report(1), /offers a seat that the task does not have, so nothing was sent/);
    assert.deepEqual(shuffler.puts, []);
  });
}

for (const [what, answer] of [
  ["a page instead of JSON", () => new Response("<html>sign in</html>", { status: 200 })],
  ["a list", () => new Response("[]", { status: 201 })],
  ["no seats", () => new Response('{"seats": []}', { status: 201 })],
]) {
  test(`an answer with ${what}`, async () => {
    const shuffler = new Shuffler("coins", answer);
    const client = await shuffler.client({ patience: 0 });
    await refused(() => client.report(1), /does not answer as a server of shuffledp does/);
    assert.deepEqual(shuffler.puts, []);
  });
}

for (const [name, values] of [
  ["coins", [2, -1, 0.5, "1", null, undefined, NaN]],
  ["bits", [-2.6, 4.01, NaN, Infinity, "1"]],
  ["decoys", ["violet", 0, undefined]],
  ["decoys-of-numbers", [-4, 400, 1.5, "1"]],
  ["decoys-of-days", ["2026-01-29", "2026-02-30", "2026-1-31", "today", 20, undefined]],
  ["decoys-of-words", [1, undefined, null]],
  ["counter-of-vectors", [[1.6, 0], [1, 0, 0], [NaN, 0], 1, "1", null, [1e200, 1e200]]],
  ["carried", [2, "0", undefined]],
]) {
  test(`values that ${name} does not have`, async () => {
    const shuffler = new Shuffler(name);
    const client = await shuffler.client();
    for (const value of values) await refused(() => client.report(value), /^value must be/);
    assert.deepEqual(shuffler.requests, []);
  });
}

test("a key is sealed to until its last day is over, in UTC, and no seat is taken for it afterwards", async () => {
  const today = new Date().toISOString().slice(0, 10);
  const expiring = (day) => (task) => ((task.version = 3), (task.expires = { [task.public_key]: day }));
  // Nobody answers there: that the client asks at all is what tells.
  const asked = async (day) => {
    const client = await opened("coins", expiring(day), { more: { patience: 0 } });
    return client.report(true);
  };
  await assert.rejects(asked(today), { kind: "unreachable" });
  await refused(() => asked("2020-02-29"), /has expired, its last day was 2020-02-29/);
});
