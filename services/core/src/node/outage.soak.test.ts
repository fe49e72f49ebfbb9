import { test } from 'node:test';
import { surviveOutage } from '../testing/outage.ts';

test('the database server stopped for 20 s under load', (t) => surviveOutage(t, 20_000));
