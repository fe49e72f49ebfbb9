import type { ErrorCode } from '../../errors.ts';
import { Type } from '../../type.ts';
import { type Api, content } from '../operation.ts';

/** What a call of a program may hold. */
const PROGRAM_INPUT_BYTES_MAX = 8 * 1024 * 1024;

const hash = Type.String({ description: 'item hash of the PROGRAM message' });
const CALL_ERRORS = [
  'INVALID_HASH',
  'PROGRAM_NOT_FOUND',
  'MESSAGE_FORGOTTEN',
  'HASH_MISMATCH',
  'FILE_NOT_FOUND',
  'FILE_TOO_LARGE',
  'FILE_CORRUPT',
  'NO_RUNNER',
  'PROGRAM_UNSUPPORTED',
  'PROGRAM_FAILED',
  'PROGRAM_CRASHED',
  'PROGRAM_OUTPUT_TOO_LARGE',
  'PROGRAM_TIMED_OUT',
  'OVERLOADED',
  'UPSTREAM_UNAVAILABLE',
  'SHUTTING_DOWN',
] as const satisfies readonly ErrorCode[];

const called = {
  tag: 'programs',
  rateClass: 'heavy',
  answers: { 200: content('whatever the program answers; its status and its type as well', '*/*') },
  errors: CALL_ERRORS,
} as const;
const passed = {
  ...called,
  method: 'GET',
  also: ['HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
  body: {
    kind: 'bytes',
    contentType: '*/*',
    description: 'what the program is given',
    isOptional: true,
    limitBytes: PROGRAM_INPUT_BYTES_MAX,
  },
} as const;

const ChecksView = Type.Record(Type.String(), Type.Boolean(), {
  description: 'by what was checked: index, environ, cache, error_handling, lifespan',
});

/** Programs that answer over HTTP (docs/programs.md). */
export const PROGRAMS_API = {
  callProgram: {
    ...passed,
    path: '/vm/:hash',
    summary: 'Pass the request to a program; the diagnostic program counts as a general request',
    params: Type.Object({ hash }),
  },
  callProgramPath: {
    ...passed,
    path: '/vm/:hash/*',
    summary: 'Pass the request to a program, which sees the path behind its hash',
    params: Type.Object({ hash, '*': Type.String({ description: 'a path of the program' }) }),
  },
  runProgram: {
    ...called,
    method: 'POST',
    path: '/run/:hash',
    summary: 'Run a program with variables',
    params: Type.Object({ hash }),
    body: {
      kind: 'bytes',
      contentType: '*/*',
      description: 'JSON: `{"variables": {...}}`; none without a body',
      isOptional: true,
    },
    errors: [...CALL_ERRORS, 'INVALID_JSON', 'INVALID_PARAMETERS', 'UNKNOWN_FIELD'],
  },
  checkPrograms: {
    method: 'GET',
    path: '/status/check/fastapi',
    summary: 'Whether programs work here: calls the diagnostic program; 503 where not',
    rateClass: 'general',
    query: Type.Object(
      {
        'retro-compatibility': Type.Optional(
          Type.String({ description: '`true`: without the checks that deployed monitors do not know' }),
        ),
      },
      { additionalProperties: false },
    ),
    answers: { 200: ChecksView, 503: ChecksView },
    errors: CALL_ERRORS,
  },
} as const satisfies Api;
