// One person's messages for a batch: packed to one length, in random order, each sealed by itself, a layer a hop.

import { Aes128Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";
import { randomOrder } from "./bits.js";
import { ShuffleDPError } from "./errors.js";
import { MESSAGE_BYTES } from "./task.js";

const suite = new CipherSuite({ kem: new DhkemX25519HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes128Gcm() });

/** The HPKE info of a layer: hop 0 is the analyzer's. */
export function binding(taskId, batchId, hop) {
  return new TextEncoder().encode(`shuffledp v1 task ${taskId} hop ${hop} batch ${batchId}`);
}

/** So many messages of 29 bytes in random order: those that count, and as many that only fill up as are missing. */
export function packed(bits, messages, total) {
  if (messages.length > total) throw new ShuffleDPError("plan and routing disagree about messages, so nothing was sent.");
  const ids = bits.bytes(16 * total);
  const rows = Array.from({ length: total }, (_, place) => {
    const row = new Uint8Array(MESSAGE_BYTES);
    row.set(ids.subarray(16 * place, 16 * place + 16));
    const message = messages[place];
    if (message !== undefined) {
      const view = new DataView(row.buffer);
      row[16] = 1;
      view.setUint32(17, message.label);
      view.setBigUint64(21, BigInt(message.payload));
    }
    return row;
  });
  return randomOrder(bits, total).map((place) => rows[place]);
}

/** Public keys as the suite takes them, the analyzer's first; refused if nothing can be sealed to one of them. */
export async function recipients(keys) {
  try {
    const read = await Promise.all(keys.map((key) => suite.kem.deserializePublicKey(key)));
    await Promise.all(read.map((key) => suite.seal({ recipientPublicKey: key }, new Uint8Array(1))));
    return read;
  } catch (cause) {
    const words = "task.public_key must be a key that messages can be sealed to, so nothing was sent: ask who made it";
    throw new ShuffleDPError(`${words} (${cause?.name ?? "failed"}; X25519 needs a browser or Node of 2025).`);
  }
}

/** A message sealed to the analyzer, then to the last hop, and so on to the first. `ephemeral` is for test vectors. */
export async function sealed(keys, taskId, batchId, message, ephemeral = []) {
  for (let layer = 0; layer < keys.length; layer++) {
    const hop = layer && keys.length - layer;
    const to = { recipientPublicKey: keys[hop], info: binding(taskId, batchId, hop), ekm: ephemeral[hop] };
    const { enc, ct } = await suite.seal(to, message);
    message = new Uint8Array(enc.byteLength + ct.byteLength);
    message.set(new Uint8Array(enc));
    message.set(new Uint8Array(ct), enc.byteLength);
  }
  return message;
}

/** The body of a report: the ciphertexts of all batches of a seat, lowest level first. */
export async function reportBody(task, keys, seat, prepared, bits) {
  const parts = [];
  for (const batch of seat.batches) {
    const messages = task.randomizer.randomize(bits, prepared, batch.size, batch.seat);
    for (const message of packed(bits, messages, batch.messages)) {
      parts.push(await sealed(keys, task.id, batch.batch_id, message));
    }
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

export { suite };
