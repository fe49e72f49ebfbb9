import { test } from 'node:test';
import { playScenario } from '../testing/play.ts';

test('a node tells its operator what each machine takes: processor, memory, disk and network', () =>
  playScenario('vm-usage.ts'));
