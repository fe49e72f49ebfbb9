import type { Call } from '../call.ts';
import { accountCalls } from './accounts.ts';
import { aggregateCalls } from './aggregates.ts';
import { fileCalls } from './files.ts';
import { httpCalls } from './http.ts';
import { machineCalls } from './machines.ts';
import { messageCalls } from './messages.ts';
import { nodeCalls } from './node.ts';
import { postCalls } from './posts.ts';
import { programCalls } from './programs.ts';
import { socketCalls } from './sockets.ts';

/** Every call, in order: later ones look at what earlier ones made. */
export const CALLS: readonly Call[] = [
  ...postCalls,
  ...aggregateCalls,
  ...fileCalls,
  ...messageCalls,
  ...socketCalls,
  ...programCalls,
  ...machineCalls,
  ...httpCalls,
  ...nodeCalls,
  ...accountCalls,
];
