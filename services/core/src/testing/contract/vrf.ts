import { type Cases, jsonCall, refuses, refusesTooMany, succeeds } from './case.ts';

const GENERATE = '/api/v0/vrf/generate';
const VERIFY = '/api/v0/vrf/verify';
const request = { seed: 'a throw of dice', min: 1, max: 6, count: 3 };

export const vrfCases: Cases = {
  'POST /api/v0/vrf/generate': [
    succeeds(() => jsonCall(GENERATE, JSON.stringify(request))),
    refuses('INVALID_PARAMETERS', () => jsonCall(GENERATE, JSON.stringify({ ...request, min: 7 }))),
    refuses('UNKNOWN_FIELD', () => jsonCall(GENERATE, JSON.stringify({ ...request, colour: 'red' }))),
    refuses('INVALID_JSON', () => jsonCall(GENERATE, '{')),
  ],
  'POST /api/v0/vrf/verify': [
    succeeds(async (core) => {
      const answer = await core.post('/vrf/generate', JSON.stringify(request));
      const { seed, values, proof } = answer.body;
      return jsonCall(VERIFY, JSON.stringify({ seed, value: values[0], proof }));
    }),
    refuses('INVALID_PARAMETERS', () => jsonCall(VERIFY, '{}')),
  ],
  'GET /api/v0/vrf/keys': [succeeds('/api/v0/vrf/keys'), refusesTooMany('/api/v0/vrf/keys')],
};
