import { test } from 'node:test';
import { surviveChurn } from './testing/churn.ts';

test('10,000 nodes with a million instances through 5,000 changes', () => surviveChurn(10_000, 5_000));
