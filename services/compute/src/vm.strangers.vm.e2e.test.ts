import { test } from 'node:test';
import { playScenario } from './testing/play.ts';

test('M6: a machine runs, is backed up and gets another disk by programs without rights', () =>
  playScenario('vm-strangers.ts'));
