// One task at one shuffler: a seat is taken and checked, a value randomized for it, sealed, kept in the outbox, sent.

import { ask } from "./calls.js";
import { ShuffleDPError } from "./errors.js";
import { carried } from "./relay.js";
import { reportBody } from "./sealing.js";
import { checkNotExpired, checkSeat, fromHex, toHex } from "./task.js";

/** After so many seats in a row that ran out, leases are too short for this device. */
const MOST_SEATS_LOST = 5;
/** These two say that a report was not kept and never will be; any other refusal leaves it in the outbox. */
const NEVER_KEPT = new Set(["seat-gone", "report-length"]);

/** Reports of one task, or of one round of a campaign. */
export class Reporting {
  #task;
  #keys;
  #calls;
  #outbox;

  /** `task` as `served` answers it; where only some slots may report, its `slots` are the first and the one after the last. */
  constructor(task, keys, calls, outbox) {
    this.#task = task;
    this.#keys = keys;
    this.#calls = carried(calls, task.schedule.routing);
    this.#outbox = outbox;
  }

  /** One report; `seated` is told of a seat before anything is randomized for it, and what it throws ends the call. */
  async report(encoded, name, seated = async () => {}) {
    const { randomizer, id: taskId } = this.#task;
    const { bits } = this.#calls;
    for (let lost = 0; lost < MOST_SEATS_LOST; lost++) {
      const seat = await this.#takeSeat();
      await seated(seat);
      const prepared = randomizer.prepare(bits, encoded, seat.position);
      const body = await reportBody(this.#task, this.#keys, seat, prepared, bits);
      const entry = { taskId, id: toHex(bits.bytes(16)), seat: seat.id, body, name };
      if (!(await this.#outbox.add(entry))) return { reports: 0, new: 0, known: true };
      const sent = await this.#deliver(entry);
      if (sent.kept) return { reports: 1, new: sent.status === 201 ? 1 : 0, known: false };
      if (sent.refused.kind !== "seat-gone") throw sent.refused;
      // Only after this refusal may the value be randomized again: the first report reached nobody and never will.
    }
    throw new ShuffleDPError("seats run out before reports for them are there: ask the operator for longer leases.");
  }

  async #takeSeat() {
    // Nobody keeps a place that will not be used.
    checkNotExpired(this.#task);
    const read = (_, answer) => (Array.isArray(answer.seats) && answer.seats.length ? answer.seats[0] : undefined);
    const within = this.#task.slots === undefined ? "" : `&slots=${this.#task.slots[1]}`;
    const seat = await ask(this.#calls, "POST", `/v1/tasks/${this.#task.id}/seats?count=1${within}`, read);
    return checkSeat(this.#task, seat);
  }

  /** Send what waits, as it is. */
  async flush() {
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

/** Work that is done one call after another. */
export class OneAtATime {
  #last = Promise.resolve();

  run(work) {
    const answer = this.#last.then(work);
    this.#last = answer.catch(() => {});
    return answer;
  }
}
