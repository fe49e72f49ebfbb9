import type { Cases } from './case.ts';
import { instanceCases } from './instances.ts';
import { messageCases } from './messages.ts';
import { nodeCases } from './node.ts';
import { storageCases } from './storage.ts';
import { webhookCases } from './webhooks.ts';

/** A new route needs its cases in one of these; the contract test says which operations have none. */
export const CASES: Cases = {
  ...messageCases,
  ...instanceCases,
  ...storageCases,
  ...nodeCases,
  ...webhookCases,
};
