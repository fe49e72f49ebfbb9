import { test } from 'node:test';
import { deliverDespiteKills } from './testing/crash.ts';

test('kill -9 of the core node 30 times while it delivers', (t) => deliverDespiteKills(t, 30));
