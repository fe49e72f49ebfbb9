import { test } from 'node:test';
import { surviveKills } from '../testing/crash.ts';

test('kill -9 of the core node 50 times under load', (t) => surviveKills(t, 50));
