// A client of one task.

import { SecureBits } from "./bits.js";
import { checkToken, checkUrl, reaching } from "./calls.js";
import { memoryOutbox } from "./outbox.js";
import { relayOf } from "./relay.js";
import { OneAtATime, Reporting } from "./reporting.js";
import { recipients } from "./sealing.js";
import { readTask } from "./task.js";

/** Reports values to a shuffler, for one task. */
export class Client {
  #task;
  #outbox;
  #reporting;
  #queue = new OneAtATime();

  /** Use `Client.open`. */
  constructor(task, keys, calls, outbox) {
    this.#task = task;
    this.#outbox = outbox;
    this.#reporting = new Reporting(task, keys, { ...calls, bits: new SecureBits() }, outbox);
  }

  /** A client of a task that was checked: its text has the id, its method is known, messages can be sealed to its key. */
  static async open({ taskId, task, shuffler, token, outbox = memoryOutbox(), patience = 60, relay, gatewayKeys }) {
    const through = relayOf(relay, gatewayKeys);
    const url = checkUrl(shuffler, "shuffler");
    const read = await readTask(task, taskId);
    const calls = { ...reaching(url, checkToken(token, read.issuer), patience), through };
    return new Client(read, await recipients(read.keys), calls, outbox);
  }

  get taskId() {
    return this.#task.id;
  }

  /** Report one person's value. With a name, a second report of that name in this outbox is not made. */
  report(value, { name } = {}) {
    return this.#queue.run(async () => {
      const encoded = await this.#task.randomizer.encode(value);
      if (name !== undefined && (await this.#outbox.knows(this.#task.id, name))) {
        const { reports } = await this.#reporting.flush();
        return { reports, new: 0, known: true };
      }
      return this.#reporting.report(encoded, name);
    });
  }

  /** Send what waits in the outbox: the same bytes. What is refused now reached nobody and may be reported again. */
  flush() {
    return this.#queue.run(() => this.#reporting.flush());
  }

  close() {
    return this.#queue.run(() => this.#outbox.close());
  }
}
