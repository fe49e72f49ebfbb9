import { HASH64_PATTERN } from '../../network-form/item-hash.ts';
import { type Static, Type } from '../../type.ts';
import { type Api, NO_PARAMETERS } from '../operation.ts';
import { reads } from './common/declare.ts';

const setDigest = {
  count: Type.Integer(),
  digest: Type.String({
    pattern: HASH64_PATTERN,
    description: 'the same for the same set, in whatever order it grew',
  }),
};
const SetDigest = Type.Object(setDigest, { title: 'SetDigest' });

const cursor = Type.String({ description: 'events up to here are in it' });
const DigestAtView = Type.Object({ cursor, ...setDigest }, { title: 'DigestAt' });

const DerivedDigestsView = Type.Object(
  {
    cursor,
    kinds: Type.Object({
      ...{ posts: SetDigest, aggregates: SetDigest, credits: SetDigest },
      ...{ files: SetDigest, measurements: SetDigest, programs: SetDigest },
    }),
  },
  { title: 'DerivedDigests' },
);

export const StateDigestView = Type.Object(
  {
    cursor,
    messages: SetDigest,
    derived: Type.Record(Type.String(), SetDigest, { description: 'by table' }),
  },
  { title: 'StateDigest' },
);
export type StateDigestView = Static<typeof StateDigestView>;

/** State: what two nodes compare to see that they agree (docs/decisions.md 3). */
export const STATE_API = {
  getStateDigest: {
    method: 'GET',
    path: '/api/v0/state/digest',
    query: NO_PARAMETERS,
    summary: 'Get a digest of all messages in force and of the state derived from them',
    ...reads(),
    rateClass: 'heavy',
    answers: { 200: StateDigestView },
  },
  getMessagesDigest: {
    method: 'GET',
    path: '/api/v0/state/digest/messages',
    query: NO_PARAMETERS,
    summary:
      'Get a digest of all messages in force and forgotten, by hash and status, that anybody can compute',
    ...reads(),
    answers: { 200: DigestAtView },
  },
  getInstancesDigest: {
    method: 'GET',
    path: '/api/v0/state/digest/instances',
    query: NO_PARAMETERS,
    summary: 'Get a digest of all instances, as they are listed, that anybody can compute',
    ...reads(),
    rateClass: 'heavy',
    answers: { 200: DigestAtView },
  },
  getDerivedDigests: {
    method: 'GET',
    path: '/api/v0/state/digest/derived',
    query: NO_PARAMETERS,
    summary:
      'Get digests of posts, aggregates, credits, files, measurements and programs, that anybody can compute from the messages',
    ...reads(),
    rateClass: 'heavy',
    answers: { 200: DerivedDigestsView },
  },
} as const satisfies Api;
