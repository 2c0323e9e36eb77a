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
  /** Where a device took part in a campaign; the entry has no bytes then. */
  visit?: Visit;
  /** The number of the newest model that a device has seen. */
  newest?: number;
}

/** One time that a device took part in a campaign: its number, from 0, and in which slot of which round. */
export interface Visit {
  number: number;
  seating: number;
  round: number;
  slot: number;
}

/** Where reports wait until they are acknowledged. Every promise is kept when the change is durable. */
export interface Outbox {
  /** Keep an entry; false, and nothing is changed, if there is one of its task and name. */
  add(entry: Entry): Promise<boolean>;
  /** Whether there is an entry of this task and name, waiting or acknowledged. */
  knows(taskId: string, name: string): Promise<boolean>;
  /** The entries of a task that are not acknowledged. */
  waiting(taskId: string): Promise<Entry[]>;
  /** All entries of a task or campaign; only a Device needs it. */
  kept?(taskId: string): Promise<Entry[]>;
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
  /** Who carries requests, so that the shuffler does not see where they come from; https unless it is this machine. */
  relay?: string;
  /** With a relay: the content of the shuffler's gateway.ohttp-keys, part of the application as taskId is. */
  gatewayKeys?: Uint8Array;
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
   * Report one person's value: 0 or 1, a number in the plan's range, a category's name, or a row of numbers.
   * With a name, a second report of that name in this outbox is not made: what waits is sent instead.
   */
  report(value: number | boolean | string | number[], options?: { name?: string }): Promise<Reported>;
  /** Send what waits in the outbox: the same bytes. */
  flush(): Promise<Flushed>;
  close(): Promise<void>;
}

export interface DeviceOptions {
  /** The SHA-256 of the campaign's text, 64 hexadecimal digits: part of the application, never of what a server says. */
  campaignId: string;
  /** The campaign's text, unchanged, from anywhere. */
  campaign: string;
  /** Where the shuffler is, the first hop of a cascade; https unless it is this machine. */
  shuffler: string;
  /** Where models are: the analyzer, or any cache of it. It is told no token. */
  analyzer: string;
  /** The token for enrol. */
  token: string;
  /** Where it is kept how often this device took part, and reports that wait; memory if left out. */
  outbox?: Outbox;
  /** Who carries reports, so that the shuffler does not see where they come from; models are fetched directly. */
  relay?: string;
  /** With a relay: the content of the shuffler's gateway.ohttp-keys, part of the application as campaignId is. */
  gatewayKeys?: Uint8Array;
  /** For how many seconds a request that fails in passing is tried again; 60. */
  patience?: number;
}

/** A place in one batch of every level, as a shuffler gives it; the client checks it against the task. */
export interface Seat {
  seat: string;
  lease_seconds: number;
  batches: SeatBatch[];
}

/** A batch of a seat: noise depends on its size. */
export interface SeatBatch {
  level: number;
  batch_id: string;
  size: number;
  seat: number;
  messages: number;
}

/** Why a server refused, as RFC 9457 says it. */
export interface Problem {
  type:
    | `urn:shuffledp:problem:${Exclude<ProblemKind, "gateway-key">}`
    | "https://iana.org/assignments/http-problem-types#ohttp-key";
  title: string;
  status: number;
  detail: string;
}

/** The kinds of refusals that servers have. */
export type ProblemKind =
  | "bad-request"
  | "batch-differs"
  | "batch-unknown"
  | "busy"
  | "gateway-away"
  | "gateway-key"
  | "gateway-slow"
  | "hop-wrong"
  | "internal"
  | "invitation-unknown"
  | "lease-lost"
  | "media-type"
  | "method-not-allowed"
  | "no-room"
  | "not-found"
  | "not-sealed"
  | "pass-needed"
  | "pass-signed"
  | "pass-spent"
  | "pieces-missing"
  | "report-length"
  | "role-wrong"
  | "seat-gone"
  | "seats-later"
  | "task-ended"
  | "task-full"
  | "task-unknown"
  | "token-missing"
  | "too-early"
  | "too-large"
  | "too-many"
  | "too-slow";

/** A model as it is stored, cached and sent: its text, and its signature in base64url. */
export interface SignedModel {
  text: string;
  signature: string;
}

/** What a campaign's analyzer publishes after every release; checked before a device goes by it. */
export interface Model {
  version: 1;
  campaign: string;
  number: number;
  round: { number: number; seating: number; first_slot: number; end_slot: number; closes: number | null } | null;
  step: { name: string; parameters: { [name: string]: unknown } } | null;
  estimate: unknown;
}

/** What a device chose, and by the model of which number; what it was chosen for stays in the device. */
export interface Choice {
  readonly offer: number;
  readonly model: number;
}

/** What became of an answer: it is on the shuffler's disk, or why nothing was sent. */
export interface Outcome {
  status: "reported" | "late" | "not asked" | "took part";
  /** The number of the model that was answered by. */
  model: number;
}

/** One person's device in one campaign (linucb, thompson, arms or a statistic); one call at a time. */
export class Device {
  private constructor();
  /** Rejects with a ShuffleDPError, and sends nothing, unless the campaign is one that this client may answer. */
  static open(options: DeviceOptions): Promise<Device>;
  readonly campaignId: string;
  /** The newest model, checked. */
  model(): Promise<Model>;
  /**
   * The offer that is best for this person by the newest model; nothing is sent but the request for the model.
   * Offers are rows of numbers, none longer than 1; with a context, features are all products of the two. Arms take neither.
   */
  choose(context?: number[] | null, offers?: number[][]): Promise<Choice>;
  /** Report what came of a choice: a reward in [0, 1], or whether it was a success. */
  reward(choice: Choice, reward: number | boolean): Promise<Outcome>;
  /** Report this person's value, where the campaign is a statistic. */
  report(value: number | boolean | string | number[]): Promise<Outcome>;
  /** Send what waits in the outbox, of every round: the same bytes. */
  flush(): Promise<Flushed>;
  /** How often this device took part. */
  visits(): Promise<number>;
  close(): Promise<void>;
}

/** Whatever was refused or could not be done, in one sentence. */
export class ShuffleDPError extends Error {
  /** A problem's kind, or refused: by this client, before anything was sent; unknown, of a server that says none. */
  readonly kind: ProblemKind | "unreachable" | "refused" | "unknown";
  /** The HTTP status, where a server refused. */
  readonly status?: number;
}
