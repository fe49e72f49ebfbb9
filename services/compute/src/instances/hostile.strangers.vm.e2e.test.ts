import { test } from 'node:test';
import { playScenario } from '../testing/play.ts';

test('a guest that takes all that it can get keeps nobody else from being served', () =>
  playScenario('vm-hostile.ts'));
