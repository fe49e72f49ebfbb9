import { test } from 'node:test';
import { surviveChurn } from './testing/churn.ts';

test('a hundred nodes with 10,000 instances through 300 changes', () => surviveChurn(100, 300));
