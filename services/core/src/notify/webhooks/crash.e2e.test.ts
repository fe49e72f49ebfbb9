import { test } from 'node:test';
import { deliverDespiteKills } from './testing/crash.ts';

/** 30 of them are in crash.soak.test.ts. */
const KILLS = 2;

test(`kill -9 of the core node ${KILLS} times while it delivers: every event arrived, under one id`, (t) =>
  deliverDespiteKills(t, KILLS));
