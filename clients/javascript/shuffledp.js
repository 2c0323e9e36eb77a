/**
 * ShuffleDP's client for browsers and Node: takes a seat, adds noise on the device, seals every message by itself and
 * sends the same bytes until they are acknowledged. What it does is written in docs/reference/wire.md.
 *
 * Noise comes from crypto.getRandomValues and from nowhere else: nothing here takes a seed.
 */

import { SecureBits } from "./internal/bits.js";
import { ask, checkToken, checkUrl } from "./internal/calls.js";
import { ShuffleDPError } from "./internal/errors.js";
import { memoryOutbox } from "./internal/outbox.js";
import { recipients, reportBody } from "./internal/sealing.js";
import { checkSeat, fromHex, readTask, toHex } from "./internal/task.js";

export { ShuffleDPError } from "./internal/errors.js";
export { fileOutbox, indexedDbOutbox, memoryOutbox } from "./internal/outbox.js";

/** After so many seats in a row that ran out, leases are too short for this device. */
const MOST_SEATS_LOST = 5;
/** These two say that a report was not kept and never will be; any other refusal leaves it in the outbox. */
const NEVER_KEPT = new Set(["seat-gone", "report-length"]);

const wait = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

/** Reports values to a shuffler, for one task. */
export class Client {
  #task;
  #keys;
  #calls;
  #outbox;
  #bits = new SecureBits();
  #last = Promise.resolve();

  /** Use `Client.open`. */
  constructor(task, keys, calls, outbox) {
    this.#task = task;
    this.#keys = keys;
    this.#calls = { ...calls, bits: this.#bits };
    this.#outbox = outbox;
  }

  /** A client of a task that was checked: its text has the id, its method is known, messages can be sealed to its key. */
  static async open({ taskId, task, shuffler, token, outbox = memoryOutbox(), patience = 60 }) {
    const url = checkUrl(shuffler);
    const read = await readTask(task, taskId);
    checkToken(token, read.issuer);
    const fetch = globalThis.fetch.bind(globalThis);
    return new Client(read, await recipients(read.keys), { url, token, patience, fetch, pause: wait }, outbox);
  }

  get taskId() {
    return this.#task.id;
  }

  /** Report one person's value. With a name, a second report of that name in this outbox is not made. */
  report(value, { name } = {}) {
    return this.#alone(async () => {
      const encoded = this.#task.randomizer.encode(value);
      if (name !== undefined && (await this.#outbox.knows(this.#task.id, name))) {
        const { reports } = await this.#flush();
        return { reports, new: 0, known: true };
      }
      return this.#report(encoded, name);
    });
  }

  /** Send what waits in the outbox: the same bytes. What is refused now reached nobody and may be reported again. */
  flush() {
    return this.#alone(() => this.#flush());
  }

  async close() {
    await this.#last;
    await this.#outbox.close();
  }

  /** One call at a time. */
  #alone(work) {
    const answer = this.#last.then(work);
    this.#last = answer.catch(() => {});
    return answer;
  }

  async #report(encoded, name) {
    const { randomizer, id: taskId } = this.#task;
    for (let lost = 0; lost < MOST_SEATS_LOST; lost++) {
      const seat = await this.#takeSeat();
      const prepared = randomizer.prepare(this.#bits, encoded);
      const body = await reportBody(this.#task, this.#keys, seat, prepared, this.#bits);
      const entry = { taskId, id: toHex(this.#bits.bytes(16)), seat: seat.id, body, name };
      if (!(await this.#outbox.add(entry))) return { reports: 0, new: 0, known: true };
      const sent = await this.#deliver(entry);
      if (sent.kept) return { reports: 1, new: sent.status === 201 ? 1 : 0, known: false };
      if (sent.refused.kind !== "seat-gone") throw sent.refused;
      // Only after this refusal may the value be randomized again: the first report reached nobody and never will.
    }
    throw new ShuffleDPError("seats run out before reports for them are there: ask the operator for longer leases.");
  }

  async #takeSeat() {
    const read = (_, answer) => (Array.isArray(answer.seats) && answer.seats.length ? answer.seats[0] : undefined);
    const seat = await ask(this.#calls, "POST", `/v1/tasks/${this.#task.id}/seats?count=1`, read);
    return checkSeat(this.#task, seat);
  }

  async #flush() {
    const tally = { reports: 0, new: 0, refused: 0 };
    for (const entry of await this.#outbox.waiting(this.#task.id)) {
      const { kept, status } = await this.#deliver(entry);
      tally.reports += kept ? 1 : 0;
      tally.new += status === 201 ? 1 : 0;
      tally.refused += kept ? 0 : 1;
    }
    return tally;
  }

  /** The same bytes until they are acknowledged or refused for good; anything else leaves them in the outbox. */
  async #deliver(entry) {
    const seat = fromHex(entry.seat);
    const body = new Uint8Array(seat.length + entry.body.length);
    body.set(seat);
    body.set(entry.body, seat.length);
    const read = (status, answer) =>
      (status === 200 || status === 201) && answer.new === (status === 201) ? status : undefined;
    try {
      const path = `/v1/tasks/${entry.taskId}/reports/${entry.id}`;
      const status = await ask(this.#calls, "PUT", path, read, body);
      await this.#outbox.settle(entry, true);
      return { kept: true, status };
    } catch (refused) {
      if (!NEVER_KEPT.has(refused.kind)) throw refused;
      await this.#outbox.settle(entry, false);
      return { kept: false, refused };
    }
  }
}
