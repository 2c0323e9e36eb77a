// Writes the client and the parts of @hpke/core that it uses as ONE ES module: `node bundle.js [FOLDER]`, dist if left out.
//
// Modules become functions that run once, in the order in which they need each other; a name that a module only passes
// on is taken from where it is defined, so that what nobody uses is left out. Comments of whole lines are dropped, and
// the licences of what was put in stand at the end. The same files make the same bytes.

import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const ROOT = dirname(fileURLToPath(import.meta.url));
const ENTRY = join(ROOT, "shuffledp.js");
const LICENCE = "SPDX-License-Identifier: Apache-2.0 AND MIT";

/** Where a name that is imported lies; packages are found as Node finds them. */
function resolved(file, name) {
  if (name.startsWith(".")) return join(dirname(file), name);
  const manifest = createRequire(file).resolve(`${name}/package.json`);
  return join(dirname(manifest), JSON.parse(readFileSync(manifest, "utf8")).exports["."].import);
}

/** `{ a, b as c }` as pairs of the name there and the name here. */
function pairs(list) {
  const words = list.split(",").map((each) => each.trim()).filter(Boolean);
  return words.map((each) => each.split(/\s+as\s+/)).map(([there, here = there]) => [there, here]);
}

/** What a module takes, gives and passes on, and its text without these words. */
function parsed(file) {
  const found = { file, takes: [], gives: [], passes: new Map(), all: [] };
  const whole = readFileSync(file, "utf8").replace(/^[ \t]*\/\*[\s\S]*?\*\/[ \t]*$/gm, "").replace(/^[ \t]*\/\/.*$/gm, "");
  found.text = whole
    .replace(/^import\s*\{([^}]*)\}\s*from\s*"([^"]+)";?$/gm, (_, list, name) => {
      found.takes.push({ from: resolved(file, name), names: pairs(list) });
      return "";
    })
    .replace(/^import\s*\*\s*as\s+(\w+)\s*from\s*"([^"]+)";?$/gm, (_, here, name) => {
      found.takes.push({ from: resolved(file, name), names: [["*", here]] });
      return "";
    })
    .replace(/^export\s*\{([^}]*)\}\s*from\s*"([^"]+)";?$/gm, (_, list, name) => {
      for (const [there, here] of pairs(list)) found.passes.set(here, [resolved(file, name), there]);
      return "";
    })
    .replace(/^export\s*\*\s*from\s*"([^"]+)";?$/gm, (_, name) => {
      found.all.push(resolved(file, name));
      return "";
    })
    .replace(/^export\s*\{([^}]*)\};?$/gm, (_, list) => {
      found.gives.push(...pairs(list));
      return "";
    })
    .replace(/^export\s+((?:async\s+)?(?:class|function\*?|const)\s+(\w+))/gm, (_, words, name) => {
      found.gives.push([name, name]);
      return words;
    })
    // The lines that only pass a name over many lines leave empty ones.
    .replace(/\n\s*\n+/g, "\n")
    .trim();
  if (/^(?:import|export)\b(?!\()/m.test(found.text)) throw new Error(`${file} has an import or export that is not understood`);
  return found;
}

/** The bundle's text. */
export function bundled(entry = ENTRY) {
  const known = new Map();
  const read = (file) => known.get(file) ?? known.set(file, parsed(file)).get(file);
  /** The module that defines a name, and what it is called there. */
  const home = (file, name) => {
    const { passes, gives, all } = read(file);
    if (name === "*" && !passes.size && !all.length) return [file, name];
    if (passes.has(name)) return home(...passes.get(name));
    if (gives.some(([, given]) => given === name)) return [file, name];
    const from = all.map((each) => home(each, name)).find(Boolean);
    return from;
  };
  const order = [];
  const visiting = new Set();
  const visit = (file) => {
    if (order.includes(file)) return;
    if (visiting.has(file)) throw new Error(`${file} needs itself`);
    visiting.add(file);
    const module = read(file);
    module.homes = module.takes.flatMap(({ from, names }) =>
      names.map(([there, here]) => {
        const place = home(from, there);
        if (!place) throw new Error(`${file} takes ${there}, which ${from} does not give`);
        return [...place, here];
      }),
    );
    for (const [place] of module.homes) visit(place);
    visiting.delete(file);
    order.push(file);
  };
  const exported = [...read(entry).passes].map(([name, [file, there]]) => [name, ...home(file, there)]);
  for (const [, file] of exported) visit(file);
  const number = (file) => `m${order.indexOf(file)}`;
  const bodies = order.map((file) => {
    const { text, homes, gives } = read(file);
    const taken = new Map();
    for (const [place, there, here] of homes) {
      const name = there === here ? here : `${there}: ${here}`;
      if (there !== "*") taken.set(place, [...(taken.get(place) ?? []), name]);
    }
    const wholes = homes.filter(([, there]) => there === "*").map(([place, , here]) => `const ${here} = ${number(place)};`);
    const lines = [...wholes, ...[...taken].map(([place, names]) => `const { ${names.join(", ")} } = ${number(place)};`)];
    const given = gives.map(([there, here]) => (there === here ? here : `${here}: ${there}`));
    return `const ${number(file)} = (() => {\n${[...lines, text].join("\n")}\nreturn { ${given.join(", ")} };\n})();`;
  });
  const names = exported.map(([name, file, there]) => `const ${name} = ${number(file)}.${there};`);
  const packages = [...new Set(order.filter((file) => file.includes("node_modules")).map(packageOf))].sort();
  const licences = packages.map((folder) => {
    const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    return `${name} ${version}\n\n${readFileSync(join(folder, "LICENSE"), "utf8").trim()}`;
  });
  const { version } = JSON.parse(readFileSync(join(dirname(entry), "package.json"), "utf8"));
  const head = `/*! ShuffleDP ${version}, client for browsers and Node. ${LICENCE}. Licences at the end. */`;
  const foot = `/*! With parts of\n\n${licences.join("\n\n")}\n*/`;
  const exporting = `export { ${exported.map(([name]) => name).join(", ")} };`;
  return { text: [head, ...bodies, ...names, exporting, foot, ""].join("\n"), modules: order.map((file) => relative(ROOT, file)) };
}

function packageOf(file) {
  const [before, after] = file.split(/node_modules\//);
  return join(before, "node_modules", ...after.split("/").slice(0, 2));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const folder = process.argv[2] ?? join(ROOT, "dist");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "shuffledp.js"), bundled().text);
  copyFileSync(join(ROOT, "shuffledp.d.ts"), join(folder, "shuffledp.d.ts"));
}
