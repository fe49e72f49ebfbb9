import { test } from 'node:test';
import { playScenario } from './testing/play.ts';

test('a virtual machine boots, outlives its compute node, and stops', () => playScenario('vm-short.ts'));
