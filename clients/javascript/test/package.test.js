// What the package gives away, where its noise comes from, and how large it is.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
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
  const names = ["Client", "ShuffleDPError", "fileOutbox", "indexedDbOutbox", "memoryOutbox"];
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

test("it is small", () => {
  const whole = gzipSync([...MODULES.values()].join("\n"), { level: 9 }).length;
  const apart = [...MODULES.values()].reduce((sum, text) => sum + gzipSync(text, { level: 9 }).length, 0);
  console.log(`${MODULES.size} modules: ${whole} bytes gzipped together, ${apart} file by file`);
  assert.ok(whole <= MOST_BYTES, `${whole}`);
  assert.ok([...MODULES.keys()].some((file) => file.includes("@hpke/core")));
});
