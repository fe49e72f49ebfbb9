import { foldControl, parseInstanceControlContent } from '@skerry/protocol';
import { defineKind } from '../accepted.ts';
import { instanceEffect } from '../effects/instances.ts';
import { changeOfInstance } from './instance-change.ts';

/** INSTANCE_CONTROL: start, stop, restart. */
export const instanceControl = defineKind({
  read: parseInstanceControlContent,
  effects: [instanceEffect],
  hangsOnCredit: true,
  accept: (message, content) =>
    changeOfInstance(content.instance_id, foldControl(message, content), content.action),
});
