import { test } from 'node:test';
import { killAgainAndAgain } from './testing/kills.ts';

const KILLS = 30;

test(`kill -9 at ${KILLS} moments of a backfill and of reorganisations: the tables equal a read of the chain`, () =>
  killAgainAndAgain(KILLS));
