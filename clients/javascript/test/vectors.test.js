// The vectors that the Python package writes: tests/vectors, or the folder that SHUFFLEDP_VECTORS names.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import * as bits from "../internal/bits.js";
import { poisson } from "../internal/tables.js";
import { honestUsers } from "../internal/values.js";
import { binding, packed, recipients, sealed, suite } from "../internal/sealing.js";
import { checkSeat, fromHex, readTask, Schedule, toHex } from "../internal/task.js";
import { vectors } from "../testing/worlds.js";

const TASKS = vectors("tasks");
const named = Object.fromEntries(TASKS.tasks.map((task) => [task.name, task]));
const sha256 = (data) => createHash("sha256").update(data).digest("hex");

test("canonical texts have the ids that were written", () => {
  for (const { text, sha256: id } of vectors("canonical")) assert.equal(sha256(text), id);
});

test("every task is read, and its seats are those of the schedule", async () => {
  assert.ok(TASKS.tasks.length > 8);
  for (const { name, text, id, seats } of TASKS.tasks) {
    const task = await readTask(text, id);
    for (const { position, batches } of seats) {
      assert.deepEqual(task.schedule.batchesOf(position), batches, `${name} ${position}`);
      const seat = checkSeat(task, { seat: "ab".repeat(16), lease_seconds: 60, batches });
      assert.deepEqual(seat.batches, batches);
    }
  }
});

test("schedules of all shapes", () => {
  for (const { routing, seats } of TASKS.routings) {
    const schedule = new Schedule(routing);
    seats.forEach((batches, position) => assert.deepEqual(schedule.batchesOf(position), batches));
  }
});

test("honest users", () => {
  for (const { users, fraction, honest } of vectors("samplers").honest) assert.equal(honestUsers(users, fraction), honest);
});

const lawOf = ({ rate, honest }) => {
  const [top, bottom] = bits.rational(rate);
  return poisson(top, bottom * BigInt(honest));
};

const DRAWS = {
  bernoulli: (source, { probability, count }) => bits.bernoulli(source, probability, count),
  coins: (source, { probability, count }) => bits.coins(source, probability, count),
  uniform: (source, { bound, count }) => bits.uniformBelow(source, bound, count),
  order: (source, { size }) => bits.randomOrder(source, size),
  round: (source, { value }) => bits.roundRandomly(source, [value]),
  poisson: (source, vector) => vector.drawn.map(() => lawOf(vector).sample(source, 1)[0]),
};

test("samplers draw the same from the same bytes", () => {
  for (const vector of vectors("samplers").draws) {
    const given = fromHex(vector.bytes);
    const source = new bits.BytesForTestsOnly(given);
    assert.deepEqual(DRAWS[vector.law](source, vector), vector.drawn, JSON.stringify(vector));
    assert.equal(source.used, given.length);
  }
});

test("tables of Poisson laws are the same to the last bit", () => {
  for (const vector of vectors("samplers").tables) {
    const law = lawOf(vector);
    const text = law.entries.map((entry) => entry.toString(16).padStart(32, "0")).join("");
    assert.deepEqual(
      [law.low, law.entries.length, sha256(fromHex(text))],
      [vector.low, vector.entries, vector.sha256],
    );
  }
});

test("a uniform number that ties with an entry is decided by 64 more digits", () => {
  const law = lawOf({ rate: 85.32558932900429, honest: 2000 });
  law.entries.forEach((entry) => {
    const drawn = (number) => {
      const given = new Uint8Array(16);
      const view = new DataView(given.buffer);
      view.setBigUint64(0, number >> 64n, true);
      view.setBigUint64(8, number & 0xffffffffffffffffn, true);
      const source = new bits.BytesForTestsOnly(given);
      return [law.sample(source, 1)[0] - law.low, source.used];
    };
    // Entries near 1 share their high words: all of them are compared.
    const before = law.entries.filter((other) => other <= entry - 1n).length;
    assert.deepEqual(drawn(entry - 1n), [before, 16]);
    assert.deepEqual(drawn(entry), [law.entries.filter((other) => other <= entry).length, 16]);
  });
});

test("a person's messages are the same from the same bytes, fillers and order included", async () => {
  for (const { task: name, position, value, bytes, batches } of vectors("reports")) {
    const task = await readTask(named[name].text, named[name].id);
    const source = new bits.BytesForTestsOnly(fromHex(bytes));
    const { randomizer, schedule } = task;
    const prepared = randomizer.prepare(source, await randomizer.encode(value), position);
    const found = schedule.batchesOf(position).map(({ size, seat, messages }) => {
      assert.equal(messages, randomizer.messages(size));
      return packed(source, randomizer.randomize(source, prepared, size, seat), messages).map(toHex);
    });
    assert.deepEqual(found, batches, `${name} ${value}`);
    assert.equal(source.used, bytes.length / 2, name);
  }
});

/** A key pair of the suite from 32 private bytes. */
async function keyPair(raw) {
  const prefix = fromHex("302e020100300506032b656e04220420");
  const pkcs8 = new Uint8Array([...prefix, ...raw]);
  const privateKey = await crypto.subtle.importKey("pkcs8", pkcs8, "X25519", true, ["deriveBits"]);
  const { x } = await crypto.subtle.exportKey("jwk", privateKey);
  const publicKey = await suite.kem.deserializePublicKey(Buffer.from(x, "base64url"));
  return { privateKey, publicKey };
}

test("layers are sealed as the vectors say, and open", async () => {
  for (const { task: name, batch_id: batch, message, layers } of vectors("sealing")) {
    const task = await readTask(named[name].text, named[name].id);
    const keys = await recipients(task.keys);
    const ephemeral = [];
    for (const layer of layers) {
      ephemeral[layer.hop] = await keyPair(fromHex(layer.ephemeral));
      assert.equal(new TextDecoder().decode(binding(task.id, batch, layer.hop)), layer.info);
    }
    const made = await sealed(keys, task.id, batch, fromHex(message), ephemeral);
    assert.equal(toHex(made), layers.at(-1).sealed);
    // Without given keys no two are alike, and they open as well.
    let opened = await sealed(keys, task.id, batch, fromHex(message));
    assert.notEqual(toHex(opened), toHex(made));
    for (const layer of [...layers].reverse()) {
      const owner = TASKS.keys[layer.hop ? `hop ${layer.hop}` : "analyzer"];
      const { privateKey } = await keyPair(fromHex(owner.private));
      const to = { recipientKey: privateKey, enc: opened.slice(0, 32), info: binding(task.id, batch, layer.hop) };
      opened = new Uint8Array(await suite.open(to, opened.slice(32)));
    }
    assert.equal(toHex(opened), message);
  }
});
