// Where reports wait until they are acknowledged: sealed bytes, never a value. An entry has a key of its own; a named
// one stays when it is acknowledged, without its bytes, so that what was reported once is not reported again.

import { fromHex, toHex } from "./task.js";

const keyOf = ({ taskId, id, name }) => (name === undefined ? id : `${taskId} ${name}`);

/** An outbox that lasts as long as the page or process: what it holds is lost with it. */
export function memoryOutbox() {
  const entries = new Map();
  return {
    async add(entry) {
      const key = keyOf(entry);
      if (entries.has(key)) return false;
      entries.set(key, entry);
      return true;
    },
    async knows(taskId, name) {
      return entries.has(keyOf({ taskId, name }));
    },
    async waiting(taskId) {
      return [...entries.values()].filter((entry) => entry.taskId === taskId && entry.body !== null);
    },
    async kept(taskId) {
      return [...entries.values()].filter((entry) => entry.taskId === taskId);
    },
    async settle(entry, acknowledged) {
      const key = keyOf(entry);
      if (acknowledged && entry.name !== undefined) entries.set(key, { ...entry, body: null });
      else entries.delete(key);
    },
    async close() {},
  };
}

/** An outbox in the browser's IndexedDB. */
export async function indexedDbOutbox(name = "shuffledp-outbox") {
  const done = (request) =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  const opening = indexedDB.open(name, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore("reports");
  const database = await done(opening);

  /** One durable transaction: answers when it is committed. */
  async function write(work) {
    const transaction = database.transaction("reports", "readwrite", { durability: "strict" });
    const committed = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = transaction.onerror = () => reject(transaction.error);
    });
    const answer = await work(transaction.objectStore("reports"));
    await committed;
    return answer;
  }
  const reading = () => database.transaction("reports").objectStore("reports");
  return {
    add: (entry) =>
      write(async (store) => {
        const isNew = (await done(store.getKey(keyOf(entry)))) === undefined;
        if (isNew) await done(store.add(entry, keyOf(entry)));
        return isNew;
      }),
    knows: async (taskId, named) => (await done(reading().getKey(keyOf({ taskId, name: named })))) !== undefined,
    waiting: async (taskId) =>
      (await done(reading().getAll())).filter((entry) => entry.taskId === taskId && entry.body !== null),
    kept: async (taskId) => (await done(reading().getAll())).filter((entry) => entry.taskId === taskId),
    settle: (entry, acknowledged) =>
      write((store) => {
        const stays = acknowledged && entry.name !== undefined;
        return done(stays ? store.put({ ...entry, body: null }, keyOf(entry)) : store.delete(keyOf(entry)));
      }),
    close: async () => database.close(),
  };
}

/** An outbox in a folder, for Node: a file a report, on disk before anything is sent. */
export async function fileOutbox(folder) {
  const [{ open, link, mkdir, readdir, readFile, rename, unlink }, { join }, { createHash, randomUUID }] =
    await Promise.all([import("node:fs/promises"), import("node:path"), import("node:crypto")]);
  await mkdir(folder, { recursive: true });
  const fileOf = (entry) => join(folder, `${createHash("sha256").update(keyOf(entry)).digest("hex")}.json`);

  async function synced(path, text) {
    const file = await open(path, text === undefined ? "r" : "wx", 0o600);
    try {
      if (text !== undefined) await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
  }
  /** A file whole or not at all: `move` says what becomes of an older one. */
  async function place(entry, move) {
    const fresh = join(folder, `${randomUUID()}.new`);
    const body = entry.body === null ? null : toHex(entry.body);
    await synced(fresh, JSON.stringify({ version: 1, ...entry, body }));
    try {
      await move(fresh, fileOf(entry));
    } finally {
      await unlink(fresh).catch(() => {});
    }
    await synced(folder);
  }
  async function kept(taskId) {
    const files = (await readdir(folder)).filter((file) => file.endsWith(".json")).sort();
    const entries = await Promise.all(files.map(async (file) => JSON.parse(await readFile(join(folder, file), "utf8"))));
    return entries
      .filter((entry) => entry.version === 1 && entry.taskId === taskId)
      .map(({ version: _, ...entry }) => ({ ...entry, body: entry.body === null ? null : fromHex(entry.body) }));
  }
  return {
    async add(entry) {
      try {
        await place(entry, link);
      } catch (cause) {
        if (cause.code === "EEXIST") return false;
        throw cause;
      }
      return true;
    },
    async knows(taskId, name) {
      return (await readdir(folder)).some((file) => fileOf({ taskId, name }).endsWith(file));
    },
    waiting: async (taskId) => (await kept(taskId)).filter((entry) => entry.body !== null),
    kept,
    async settle(entry, acknowledged) {
      if (acknowledged && entry.name !== undefined) return place({ ...entry, body: null }, rename);
      await unlink(fileOf(entry)).catch((cause) => {
        if (cause.code !== "ENOENT") throw cause;
      });
      await synced(folder);
    },
    async close() {},
  };
}
