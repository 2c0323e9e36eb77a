// The retry rules: the same bytes until they are acknowledged; new noise only after a seat is gone.

import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileOutbox, memoryOutbox } from "../shuffledp.js";
import { problem, Shuffler } from "../testing/worlds.js";

/** Answers each PUT in turn with what is listed; then as an honest shuffler. */
const inTurn = (...answers) => {
  const left = [...answers];
  return (request, shuffler) => (request.method === "PUT" ? left.shift()?.(request, shuffler) : undefined);
};
const lost = (request, shuffler) => {
  // It was kept, and nobody is told.
  shuffler.reports.set(request.path.split("/").at(-1), request.body);
  throw new TypeError("connection broken");
};
const broken = () => {
  throw new TypeError("connection broken");
};

async function folder(work) {
  const path = await mkdtemp(join(tmpdir(), "outbox-"));
  try {
    await work(path);
  } finally {
    await rm(path, { recursive: true });
  }
}

test("whatever passes leads to the same bytes", async () => {
  const portal = () => new Response("<html>sign in</html>", { status: 200 });
  const odd = () => new Response('{"new": false}', { status: 201 });
  const answers = [broken, () => problem(503, "no-room"), () => problem(429, "busy"), portal, odd, lost];
  const shuffler = new Shuffler("poisson-bits", inTurn(...answers));
  const client = await shuffler.client();
  assert.deepEqual(await client.report(1), { reports: 1, new: 0, known: false });
  assert.equal(shuffler.puts.length, answers.length + 1);
  assert.equal(new Set(shuffler.puts.map(({ path, body }) => path + body)).size, 1);
  assert.equal(shuffler.seats, 1);
});

test("nobody comes back sooner than Retry-After says", async () => {
  const later = new Date(Date.now() + 3_600_000).toUTCString();
  for (const said of ["3600", later]) {
    const shuffler = new Shuffler("coins", () => problem(429, "busy", { "Retry-After": said }));
    // An hour is longer than patience: it gives up at once.
    await assert.rejects((await shuffler.client()).report(1), (error) => error.kind === "unreachable");
    assert.equal(shuffler.requests.length, 1);
  }
});

test("no header says who it is, but for the token", async () => {
  const shuffler = new Shuffler("coins");
  await (await shuffler.client()).report(1);
  assert.deepEqual(Object.keys(shuffler.puts[0].headers).sort(), ["Accept", "Authorization", "Content-Type"]);
});

test("after seat-gone, and only then, noise is new and so is the seat", async () => {
  const shuffler = new Shuffler("poisson-bits", inTurn(broken, () => problem(410, "seat-gone")));
  const client = await shuffler.client();
  assert.deepEqual(await client.report(0), { reports: 1, new: 1, known: false });
  const [first, again, other] = shuffler.puts;
  assert.equal(first.body, again.body);
  assert.notEqual(other.path, again.path);
  assert.notEqual(other.body.slice(0, 32), again.body.slice(0, 32));
  assert.equal(shuffler.seats, 2);
});

test("seats that run out again and again are given up", async () => {
  const shuffler = new Shuffler("coins", (request) => (request.method === "PUT" ? problem(410, "seat-gone") : undefined));
  const outbox = memoryOutbox();
  await assert.rejects((await shuffler.client({ outbox })).report(1), /longer leases/);
  assert.equal(shuffler.puts.length, 5);
  assert.deepEqual(await outbox.waiting(shuffler.task.id), []);
});

for (const [status, kind] of [
  [401, "token-missing"],
  [404, "task-unknown"],
  [413, "too-large"],
]) {
  test(`${kind} leaves the report where it is, and flush sends the same bytes`, async () => {
    const shuffler = new Shuffler("coins", inTurn(() => problem(status, kind)));
    const outbox = memoryOutbox();
    const client = await shuffler.client({ outbox });
    await assert.rejects(client.report(1), (error) => error.kind === kind && error.status === status);
    assert.equal((await outbox.waiting(shuffler.task.id)).length, 1);
    assert.deepEqual(await client.flush(), { reports: 1, new: 1, refused: 0 });
    assert.equal(shuffler.puts[0].body, shuffler.puts[1].body);
    assert.deepEqual(await outbox.waiting(shuffler.task.id), []);
  });
}

test("a report of a wrong length is dropped and said", async () => {
  const shuffler = new Shuffler("coins", inTurn(() => problem(422, "report-length")));
  const outbox = memoryOutbox();
  await assert.rejects((await shuffler.client({ outbox })).report(1), (error) => error.kind === "report-length");
  assert.deepEqual(await outbox.waiting(shuffler.task.id), []);
});

test("a full task is said, and nothing is randomized", async () => {
  const shuffler = new Shuffler("coins", () => problem(409, "task-full"));
  await assert.rejects((await shuffler.client()).report(1), (error) => error.kind === "task-full");
  assert.equal(shuffler.requests.length, 1);
});

test("a folder outlives its process: the same bytes, once, and no value in any file", () =>
  folder(async (path) => {
    const shuffler = new Shuffler("decoys", inTurn(broken, broken));
    const first = await shuffler.client({ outbox: await fileOutbox(path), patience: 0 });
    await assert.rejects(first.report("green", { name: "colour" }), /cannot be reached/);
    const files = await readdir(path);
    assert.equal(files.length, 1);
    assert.ok(!(await readFile(join(path, files[0]), "utf8")).includes("green"));
    // Another process, which asks again: nothing is randomized, what waits is sent.
    const second = await shuffler.client({ outbox: await fileOutbox(path) });
    assert.deepEqual(await second.report("green", { name: "colour" }), { reports: 1, new: 0, known: true });
    assert.equal(new Set(shuffler.puts.map(({ path: to, body }) => to + body)).size, 1);
    assert.equal(shuffler.seats, 1);
    assert.equal(shuffler.reports.size, 1);
    // And a third: it is known, and there is nothing to send.
    const third = await shuffler.client({ outbox: await fileOutbox(path) });
    assert.deepEqual(await third.report("red", { name: "colour" }), { reports: 0, new: 0, known: true });
    assert.equal(shuffler.reports.size, 1);
    assert.ok(!/"body":"/.test(await readFile(join(path, files[0]), "utf8")));
  }));

test("what is refused while nobody has the value may be reported again", () =>
  folder(async (path) => {
    const shuffler = new Shuffler("coins", inTurn(broken, () => problem(410, "seat-gone")));
    const first = await shuffler.client({ outbox: await fileOutbox(path), patience: 0 });
    await assert.rejects(first.report(1, { name: "once" }));
    const second = await shuffler.client({ outbox: await fileOutbox(path) });
    assert.deepEqual(await second.flush(), { reports: 0, new: 0, refused: 1 });
    assert.deepEqual(await second.report(1, { name: "once" }), { reports: 1, new: 1, known: false });
  }));

test("two at once of one name are one", async () => {
  const outbox = memoryOutbox();
  const shuffler = new Shuffler("coins");
  const [one, other] = await Promise.all([shuffler.client({ outbox }), shuffler.client({ outbox })]);
  const sent = await Promise.all([one, other].map((client) => client.report(1, { name: "once" })));
  assert.equal(shuffler.reports.size, 1);
  assert.deepEqual(sent.map(({ known }) => known).sort(), [false, true]);
});

test("many calls of one client are made one after another", async () => {
  const shuffler = new Shuffler("coins");
  const client = await shuffler.client();
  const sent = await Promise.all([0, 1, 1, 0, 1].map((value) => client.report(value)));
  assert.ok(sent.every((each) => each.new === 1));
  const methods = shuffler.requests.map(({ method }) => method).join(" ");
  assert.equal(methods, Array(5).fill("POST PUT").join(" "));
});
