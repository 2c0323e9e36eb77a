// What the package gives away, where its noise comes from, and how large it is.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { bundled } from "../bundle.js";
import { SecureBits } from "../internal/bits.js";
import * as entry from "../shuffledp.js";
import { Shuffler } from "../testing/worlds.js";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const MOST_BYTES = 60_000;
const MANIFEST = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));

/** Every module that a browser loads for this one, without a bundler. */
function loaded(file, found = new Map()) {
  if (found.has(file)) return found;
  const text = readFileSync(file, "utf8");
  found.set(file, text);
  for (const [, name] of text.matchAll(/^(?:import|export)\s[^;]*?from\s*"([^"]+)"/gm)) {
    loaded(name.startsWith(".") ? join(dirname(file), name) : join(ROOT, "node_modules", name, "esm/mod.js"), found);
  }
  return found;
}

const MODULES = loaded(join(ROOT, "shuffledp.js"));
const OWN = [...MODULES].filter(([file]) => !file.includes("node_modules"));

test("nothing that is exported takes random bits", () => {
  const names = ["Client", "Device", "ShuffleDPError", "fileOutbox", "indexedDbOutbox", "memoryOutbox"];
  assert.deepEqual(Object.keys(entry).sort(), names);
  assert.deepEqual(Object.keys(MANIFEST.exports), ["."]);
  // The hook of the tests is in one file, and no module of the client names it.
  const hooks = OWN.filter(([, text]) => text.includes("BytesForTestsOnly")).map(([file]) => file);
  assert.deepEqual(hooks, [join(ROOT, "internal/bits.js")]);
});

test("types are declared of all that is exported", () => {
  const declared = readFileSync(join(ROOT, "shuffledp.d.ts"), "utf8").matchAll(/^export (?:class|function) (\w+)/gm);
  assert.deepEqual([...declared].map(([, name]) => name).sort(), Object.keys(entry).sort());
});

test("there is one dependency, pinned, and one source of noise", () => {
  assert.deepEqual(Object.keys(MANIFEST.dependencies), ["@hpke/core"]);
  for (const kind of ["devDependencies", "optionalDependencies", "peerDependencies", "bundleDependencies", "scripts"]) {
    assert.ok(!(kind in MANIFEST), kind);
  }
  // And what it brings along, with their digests: nothing else is ever fetched.
  const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
  const { "": own, ...brought } = lock.packages;
  assert.deepEqual(Object.keys(brought).sort(), ["node_modules/@hpke/common", "node_modules/@hpke/core"]);
  assert.deepEqual(own.dependencies, MANIFEST.dependencies);
  for (const each of Object.values(brought)) assert.match(each.integrity, /^sha512-/);
  const foreign = [...MODULES.keys()].filter((file) => file.includes("node_modules") && !file.includes("/@hpke/"));
  assert.deepEqual(foreign, []);
  for (const [file, text] of OWN) {
    const named = [...text.matchAll(/(?:from|import)\s*\(?\s*"([^".][^"]*)"/g)].map(([, name]) => name);
    assert.deepEqual(named.filter((name) => name !== "@hpke/core" && !name.startsWith("node:")), [], file);
  }
  assert.match(MANIFEST.dependencies["@hpke/core"], /^\d+\.\d+\.\d+$/);
  for (const [file, text] of OWN) assert.ok(!/Math\s*\.\s*random|randomBytes|seed\b/.test(text.replace(/^.*takes a seed.*$/m, "")), file);
});

test("an option that looks like a seed changes nothing: two reports have nothing in common", async () => {
  const shuffler = new Shuffler("coins");
  const client = await shuffler.client({ bits: 1, seed: 1 });
  await client.report(1, { seed: 1, bits: new Uint8Array(99) });
  await client.report(1, { seed: 1, bits: new Uint8Array(99) });
  const [one, other] = shuffler.puts.map(({ body }) => body.slice(32));
  assert.equal(one.length, other.length);
  const same = one.match(/../g).filter((byte, place) => byte === other.slice(2 * place, 2 * place + 2)).length;
  // Of 154 bytes each is the same with probability 1/256: 20 or more have one below 1e-20.
  assert.ok(same < 20, `${same}`);
});

test("bits are the operating system's, each given once", () => {
  const real = crypto.getRandomValues.bind(crypto);
  const given = [];
  crypto.getRandomValues = (block) => {
    real(block);
    given.push(...block);
    return block;
  };
  try {
    const bits = new SecureBits();
    const drawn = [3, 5000, 1, 0, 4096].flatMap((count) => [...bits.bytes(count)]);
    assert.deepEqual(drawn, given.slice(0, drawn.length));
  } finally {
    crypto.getRandomValues = real;
  }
});

test("it is one module of at most 60 kB, gzipped, with the licences of what it brings along", () => {
  const { text, modules } = bundled();
  const length = gzipSync(text, { level: 9 }).length;
  console.log(`${modules.length} modules in one: ${length} bytes gzipped`);
  assert.ok(length <= MOST_BYTES, `${length}`);
  assert.doesNotMatch(text, /^(import|export)\b(?! \{ Client,)/m);
  assert.equal(text, bundled().text);
  for (const name of ["core", "common"]) {
    const folder = join(ROOT, "node_modules/@hpke", name);
    assert.ok(text.includes(readFileSync(join(folder, "LICENSE"), "utf8").trim()), name);
  }
  // What nobody uses is left out: hashes and curves that Web Crypto has.
  assert.ok(modules.some((file) => file.includes("@hpke/core")));
  assert.deepEqual(modules.filter((file) => /sha3|x448|montgomery/.test(file)), []);
  assert.ok(OWN.every(([file]) => file.endsWith("shuffledp.js") || modules.includes(relative(ROOT, file))));
  // The one hook of the tests is in it and cannot be reached: nothing exports it.
  assert.equal(text.match(/BytesForTestsOnly/g)?.length ?? 0, 2);
});

test("the one module does what its files do: a report opens, and hostile seats are refused", async () => {
  const folder = await mkdtemp(join(tmpdir(), "bundle-"));
  try {
    await writeFile(join(folder, "shuffledp.mjs"), bundled().text);
    const one = await import(pathToFileURL(join(folder, "shuffledp.mjs")).href);
    assert.deepEqual(Object.keys(one).sort(), Object.keys(entry).sort());
    const shuffler = new Shuffler("coins-of-few");
    const real = globalThis.fetch;
    globalThis.fetch = shuffler.fetch.bind(shuffler);
    try {
      const { id: taskId, text: task } = shuffler.task;
      const client = await one.Client.open({ taskId, task, shuffler: "http://localhost:1", token: "t" });
      assert.deepEqual(await client.report(1), { reports: 1, new: 1, known: false });
      shuffler.schedule.users = 1;
      shuffler.seat = () => ({ seat: "0".repeat(32), lease_seconds: 60, batches: [] });
      await assert.rejects(client.report(1), (error) => error instanceof one.ShuffleDPError && /does not have/.test(error.message));
    } finally {
      globalThis.fetch = real;
    }
    const { routing } = JSON.parse(shuffler.task.text);
    assert.equal(shuffler.puts[0].body.length, 2 * (16 + Object.values(routing.messages)[0] * routing.ciphertext_bytes));
  } finally {
    await rm(folder, { recursive: true });
  }
});
