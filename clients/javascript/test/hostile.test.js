// Servers on a socket that lie, redirect or never end: the client refuses in a sentence, and no report leaves it.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { test } from "node:test";
import { Client, Device } from "../shuffledp.js";
import { CAMPAIGNS, refused, Shuffler, TASKS } from "../testing/worlds.js";

/** A server on this machine that answers by `reply`, and remembers what it was sent. */
async function serving(reply, work) {
  const seen = [];
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    seen.push({ method: request.method, path: request.url, headers: request.headers, length: Buffer.concat(parts).length });
    response.on("error", () => {});
    await reply(request, response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await work(`http://127.0.0.1:${server.address().port}`, seen);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const json = (response, status, document) =>
  response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(document));

const opened = (shuffler, name = "coins", more = {}) =>
  Client.open({ taskId: TASKS[name].id, task: TASKS[name].text, shuffler, token: "t0ken", patience: 0, ...more });

const nothingSent = (seen) => assert.deepEqual(seen.filter(({ method, length }) => method === "PUT" || length > 0), []);

for (const status of [301, 302, 303, 307, 308]) {
  test(`a redirect (${status}) is not followed: the token goes nowhere else`, () =>
    serving(
      (_, response) => json(response, 201, { seats: [] }),
      (elsewhere, gone) =>
        serving(
          (_, response) => response.writeHead(status, { Location: `${elsewhere}/v1/x` }).end(),
          async (shuffler, seen) => {
            await refused(async () => (await opened(shuffler)).report(1), /cannot be reached/);
            nothingSent(seen);
            assert.deepEqual(gone, []);
          },
        ),
    ));
}

test("an answer that never ends is read no further than any server's is long", () =>
  serving(
    async (_, response) => {
      response.writeHead(201, { "Content-Type": "application/json" });
      response.write('{"seats": [');
      const part = "1,".repeat(1 << 19);
      let written = 0;
      while (written < 64 << 20 && response.writable && !response.destroyed) {
        written += part.length;
        if (!response.write(part)) await new Promise((resolve) => response.once("drain", resolve).once("close", resolve));
      }
      response.end();
    },
    async (shuffler, seen) => {
      await refused(async () => (await opened(shuffler)).report(1), /does not answer as a server of shuffledp does/);
      nothingSent(seen);
    },
  ));

test("a seat of another task", () => {
  const other = new Shuffler("counter");
  return serving(
    (_, response) => json(response, 201, { seats: [other.seat()] }),
    async (shuffler, seen) => {
      await refused(async () => (await opened(shuffler)).report(1), /offers a seat that the task does not have, so nothing was sent/);
      nothingSent(seen);
    },
  );
});

test("a seat in a batch of one", () =>
  serving(
    (_, response) => {
      const batches = [{ level: 1, batch_id: "1.0.1", size: 1, seat: 0, messages: 2 }];
      json(response, 201, { seats: [{ seat: "0".repeat(32), lease_seconds: 60, batches }] });
    },
    async (shuffler, seen) => {
      await refused(async () => (await opened(shuffler)).report(1), /offers a seat that the task does not have/);
      nothingSent(seen);
    },
  ));

test("a seat of a carried window that is said to be another", () => {
  const honest = new Shuffler("carried");
  return serving(
    (_, response) => {
      const seat = honest.seat();
      seat.batches[0].size = 60;
      json(response, 201, { seats: [seat] });
    },
    async (shuffler, seen) => {
      await refused(async () => (await opened(shuffler, "carried")).report(1), /does not have/);
      nothingSent(seen);
    },
  );
});

const matching = (text) => createHash("sha256").update(text).digest("hex");

for (const [what, name, change, words] of [
  ["another key", "coins", (task) => (task.public_key = TASKS["coins-of-few"].text.match(/"public_key":"([^"]+)"/)[1]), /SHA-256/],
  ["another plan", "coins", (task) => (task.plan.epsilon = 9), /SHA-256/],
  ["another fingerprint", "coins", (task) => (task.plan.fingerprint = "0".repeat(64)), /SHA-256/],
  ["fewer messages", "coins", (task) => (task.routing.messages[2000] = 1), /SHA-256/],
]) {
  test(`a text with ${what} is not the task that the application names`, () => {
    const task = JSON.parse(TASKS[name].text);
    change(task);
    return serving(
      (_, response) => json(response, 500, {}),
      async (shuffler, seen) => {
        await refused(() => opened(shuffler, name, { task: JSON.stringify(task) }), words);
        assert.deepEqual(seen, []);
      },
    );
  });
}

test("a text that is longer than any task's", () => {
  const task = `{"x":"${"x".repeat(1 << 20)}"}`;
  return refused(() => opened("http://127.0.0.1:1", "coins", { task, taskId: matching(task) }), /at most 1048576 letters/);
});

test("methods that are not specified are refused before a seat is taken", async () => {
  for (const [protocol, method] of [
    ["binary-sum", "shares"],
    ["histogram", "sketch"],
    ["histogram", "count-min"],
    ["vector-sum", "bits"],
    ["distinct-elements", "sketch"],
  ]) {
    const document = JSON.parse(TASKS.coins.text);
    Object.assign(document.plan, { protocol, method });
    const task = JSON.stringify(document);
    const words = new RegExp(`plan.method ${protocol}/${method} is unknown to this client, so nothing was sent`);
    await refused(() => opened("http://127.0.0.1:1", "coins", { task, taskId: matching(task) }), words);
  }
});

for (const [what, change, words] of [
  ["fewer messages than the method sends", (task) => (task.routing.messages[2000] = 1), /does not have|disagree/],
  ["a share alone", (task) => (task.routing.messages[45] = 1), /modulus_bits must be/],
]) {
  test(`a task whose routing has ${what} is refused where its seat is taken, and nothing was sent`, async () => {
    const name = what.includes("share") ? "counter-laplace" : "coins";
    const document = JSON.parse(TASKS[name].text);
    const sizes = Object.keys(document.routing.messages);
    document.routing.messages = Object.fromEntries(sizes.map((size) => [size, 1]));
    change(document);
    const task = JSON.stringify(document);
    const honest = new Shuffler(name);
    honest.schedule.routing.messages = document.routing.messages;
    await serving(
      (_, response) => json(response, 201, { seats: [honest.seat()] }),
      async (shuffler, seen) => {
        const asked = { taskId: matching(task), task, shuffler, token: "t", patience: 0 };
        await refused(async () => (await Client.open(asked)).report(1), words);
        nothingSent(seen);
      },
    );
  });
}

test("a cache that shows a model of another campaign, or none, is sent nothing", async () => {
  const { id: campaignId, text: campaign } = CAMPAIGNS.linucb;
  for (const [answer, words] of [
    [CAMPAIGNS.arms.models[0], /must be of this campaign/],
    [{ text: "{}", signature: CAMPAIGNS.linucb.models[0].signature }, /must be signed/],
    [{ text: 7, signature: 7 }, /does not answer as a server of shuffledp does/],
  ]) {
    await serving(
      (_, response) => json(response, 200, answer),
      async (url, seen) => {
        const device = await Device.open({ campaignId, campaign, shuffler: url, analyzer: url, token: "t", patience: 0 });
        await refused(() => device.choose(undefined, [[1, 0]]), words);
        assert.deepEqual(seen.map(({ method, headers }) => [method, headers.authorization]), [["GET", undefined]]);
      },
    );
  }
});
