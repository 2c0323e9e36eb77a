/**
 * ShuffleDP's client for browsers and Node: takes a seat, adds noise on the device, seals every message by itself and
 * sends the same bytes until they are acknowledged. What it does is written in docs/reference/wire.md.
 *
 * Noise comes from crypto.getRandomValues and from nowhere else: nothing here takes a seed.
 */

export { Client } from "./internal/client.js";
export { Device } from "./internal/device.js";
export { ShuffleDPError } from "./internal/errors.js";
export { fileOutbox, indexedDbOutbox, memoryOutbox } from "./internal/outbox.js";
