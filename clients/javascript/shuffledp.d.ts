/** ShuffleDP's client for browsers and Node. What travels is specified in docs/reference/wire.md. */

/** What became of a report. */
export interface Reported {
  /** Reports that the shuffler acknowledged in this call: they are on its disk. */
  reports: number;
  /** Of these, acknowledged for the first time; the answers to the others had been lost on the way. */
  new: number;
  /** Whether a report of this name had been made before, so that none was made now. */
  known: boolean;
}

/** What became of reports that waited. */
export interface Flushed {
  reports: number;
  new: number;
  /** Refused for good: they reached nobody, and their values may be reported again. */
  refused: number;
}

/** A report that waits: sealed bytes, never a value. */
export interface Entry {
  taskId: string;
  id: string;
  seat: string;
  /** null once it is acknowledged, where it has a name. */
  body: Uint8Array | null;
  name?: string;
}

/** Where reports wait until they are acknowledged. Every promise is kept when the change is durable. */
export interface Outbox {
  /** Keep an entry; false, and nothing is changed, if there is one of its task and name. */
  add(entry: Entry): Promise<boolean>;
  /** Whether there is an entry of this task and name, waiting or acknowledged. */
  knows(taskId: string, name: string): Promise<boolean>;
  /** The entries of a task that are not acknowledged. */
  waiting(taskId: string): Promise<Entry[]>;
  /** Forget an entry; of one that is acknowledged and has a name, forget its bytes only. */
  settle(entry: Entry, acknowledged: boolean): Promise<void>;
  close(): Promise<void>;
}

/** An outbox that lasts as long as the page or process. */
export function memoryOutbox(): Outbox;
/** An outbox in the browser's IndexedDB. */
export function indexedDbOutbox(name?: string): Promise<Outbox>;
/** An outbox in a folder, for Node. */
export function fileOutbox(folder: string): Promise<Outbox>;

export interface Options {
  /** The SHA-256 of the task's text, 64 hexadecimal digits: part of the application, never of what a server says. */
  taskId: string;
  /** The task's text, unchanged, from anywhere. */
  task: string;
  /** Where the shuffler is, the first hop of a cascade; https unless it is this machine. */
  shuffler: string;
  /** The token for enrol; where the task names an issuer, a token that it has signed for this person, 354 bytes. */
  token: string | Uint8Array;
  /** Where reports wait; memory if left out. */
  outbox?: Outbox;
  /** For how many seconds a request that fails in passing is tried again; 60. */
  patience?: number;
}

/** Reports values to a shuffler, for one task; one call at a time. */
export class Client {
  private constructor();
  /** Rejects with a ShuffleDPError, and sends nothing, unless the task is one that this client may answer. */
  static open(options: Options): Promise<Client>;
  readonly taskId: string;
  /**
   * Report one person's value: 0 or 1, a number in the plan's range, or a category's name.
   * With a name, a second report of that name in this outbox is not made: what waits is sent instead.
   */
  report(value: number | boolean | string, options?: { name?: string }): Promise<Reported>;
  /** Send what waits in the outbox: the same bytes. */
  flush(): Promise<Flushed>;
  close(): Promise<void>;
}

/** Whatever was refused or could not be done, in one sentence. */
export class ShuffleDPError extends Error {
  /** A problem's kind (seat-gone, task-full, ...), unreachable, or refused: by this client, before anything was sent. */
  readonly kind: string;
  /** The HTTP status, where a server refused. */
  readonly status?: number;
}
