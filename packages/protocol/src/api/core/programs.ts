import { ProgramContent } from '../../content/program.ts';
import { HASH64_PATTERN } from '../../network-form/item-hash.ts';
import { type Static, Type } from '../../type.ts';
import { type Api, content, defaulted, NO_PARAMETERS } from '../operation.ts';
import { reads, takesSigned } from './common/declare.ts';
import { SUBMISSION_ANSWERS } from './common/submission.ts';

export const RunBody = Type.Object(
  { variables: Type.Optional(Type.Record(Type.String(), Type.Unknown())) },
  { additionalProperties: false },
);

/** A program that a compute node runs without being called by anybody. */
const AssignedProgram = Type.Object({
  item_hash: Type.String(),
  persistent: Type.Boolean({ description: 'whether it is to be kept running' }),
  message: Type.Array(Type.Unknown(), { description: 'filters of messages that it is called with' }),
});
export type AssignedProgram = Static<typeof AssignedProgram>;

const ProgramRunner = Type.Object(
  {
    node_id: Type.String(),
    node_address: Type.String(),
    url: Type.String({ description: 'of its API' }),
  },
  { title: 'ProgramRunner' },
);
export type ProgramRunner = Static<typeof ProgramRunner>;

/** Programs: keep and run (specification, "Programs"; docs/programs.md). */
export const PROGRAMS_API = {
  createProgram: {
    method: 'POST',
    path: '/api/v0/programs',
    summary: 'Create a program (signed PROGRAM)',
    ...takesSigned({ type: 'PROGRAM', content: ProgramContent }, 'CREDIT_INSUFFICIENT', 'MESSAGE_FORGOTTEN'),
    answers: SUBMISSION_ANSWERS,
  },
  listProgramsOnMessage: {
    method: 'GET',
    path: '/api/v0/programs/on/message',
    summary: 'List programs that subscribe to messages, with their subscriptions',
    ...reads('LIST_TOO_COSTLY'),
    query: Type.Object(
      { sort_order: defaulted(Type.Integer({ enum: [-1, 1], description: '-1: newest first' }), -1) },
      { additionalProperties: false },
    ),
    answers: {
      200: Type.Array(
        Type.Object({
          item_hash: Type.String(),
          content: Type.Object({
            on: Type.Object({ message: Type.Array(Type.Unknown(), { description: 'filters of messages' }) }),
          }),
        }),
      ),
    },
    deployed: {},
  },
  listAssignedPrograms: {
    method: 'GET',
    path: '/api/v0/programs/assigned/:node_id',
    query: NO_PARAMETERS,
    summary: 'List the programs that a compute node keeps running or calls when messages come',
    ...reads('LIST_TOO_COSTLY'),
    params: Type.Object({
      node_id: Type.String({ pattern: HASH64_PATTERN, description: 'of the compute node' }),
    }),
    answers: {
      200: Type.Object({
        programs: Type.Array(AssignedProgram),
        cursor: Type.String({ description: 'events after it may not be in the list yet' }),
      }),
    },
  },
  listProgramRunners: {
    method: 'GET',
    path: '/api/v0/programs/:program_hash/runners',
    query: NO_PARAMETERS,
    summary: 'List the compute nodes that a program is sent to, the one that is asked first first',
    ...reads('INVALID_HASH', 'PROGRAM_NOT_FOUND'),
    params: Type.Object({
      program_hash: Type.String({ description: 'item hash of the PROGRAM message' }),
    }),
    answers: { 200: Type.Object({ runners: Type.Array(ProgramRunner) }) },
  },
  runProgram: {
    method: 'POST',
    path: '/api/v0/run/:program_hash',
    summary: 'Run a program',
    rateClass: 'heavy',
    errors: [
      'DATABASE_UNAVAILABLE',
      'INVALID_HASH',
      'PROGRAM_NOT_FOUND',
      'NO_RUNNER',
      'OVERLOADED',
      'PROGRAM_UNSUPPORTED',
      'PROGRAM_FAILED',
      'PROGRAM_CRASHED',
      'PROGRAM_OUTPUT_TOO_LARGE',
      'PROGRAM_TIMED_OUT',
    ],
    params: Type.Object({
      program_hash: Type.String({ description: 'item hash of the PROGRAM message' }),
    }),
    body: { kind: 'json', schema: RunBody, isStrict: true, isOptional: true },
    answers: { 200: content('whatever the program answers; its status and its type as well', '*/*') },
  },
} as const satisfies Api;
