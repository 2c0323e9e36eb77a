/** Whatever the client refuses or could not do: one sentence. */
export class ShuffleDPError extends Error {
  /** @param {string} message @param {{kind?: string, status?: number, waiting?: number}} [more] */
  constructor(message, more = {}) {
    super(message);
    this.name = "ShuffleDPError";
    Object.assign(this, { kind: "refused", ...more });
  }
}

/** @param {boolean} holds @param {string} message */
export function insist(holds, message) {
  if (!holds) throw new ShuffleDPError(message);
}
