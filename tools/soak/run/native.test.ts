import { test } from 'node:test';
import { soakFlights } from '../flights.ts';
import { soakNativeHellos } from '../hellos-native.ts';

/** `npm run soak` of the same names, briefly: what they compile is compiled by no other test. */

const BRIEFLY = { seconds: 1, seed: 1, inputs: 5_000 };

test('damaged first flights of QUIC: both readers say the same', () => soakFlights(BRIEFLY));

test('damaged ClientHellos in the native reader alone, under the sanitizers', () =>
  soakNativeHellos(BRIEFLY));
