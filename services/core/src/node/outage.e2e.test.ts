import { test } from 'node:test';
import { surviveOutage } from '../testing/outage.ts';

test('the database server stopped for 3 s under load: 503 with Retry-After, then service resumes, nothing acknowledged is lost', (t) =>
  surviveOutage(t, 3_000));
