import { flag, integer, text, texts } from '../../infra/runtime/command-options.ts';
import { caOption, nodeOption } from '../cli/command.ts';

const EVENTS_MAX = 1_000_000_000;
const STREAMS_MAX = 100_000;
const STREAMS_DEFAULT = 100;
const LOOKED_DEFAULT = 100_000;

const queryOptions = {
  category: text('NAME', null, 'Of streams of this category: what stands before the first - of their names'),
  type: texts('TYPE', 'Of this event type; repeated: of any of them'),
  correlation: text('ID', null, 'With this $correlationId in their metadata'),
  tag: texts('TAG', 'With this tag in $tags of their metadata; repeated: with all of them'),
};

export const readOptions = {
  ...queryOptions,
  from: text(
    'PLACE',
    null,
    'First event to show: its number in STREAM, or its position in $all such as 2191/2191, before which --backward begins; with --follow also end, for new events only',
    'the oldest, with --backward the newest',
  ),
  backward: flag('Newest event first'),
  limit: { ...integer('N', 1, EVENTS_MAX, EVENTS_MAX, 'Most events to show'), fallbackText: 'all' },
  follow: flag('Go on with new events until Ctrl+C'),
  node: nodeOption,
  ca: caOption,
  json: flag('One JSON object per line: the event as the node sends it'),
};

export const streamsOptions = {
  ...queryOptions,
  limit: integer('N', 1, STREAMS_MAX, STREAMS_DEFAULT, 'Most streams to show'),
  look: integer('N', 1, EVENTS_MAX, LOOKED_DEFAULT, 'Most matching events to look at'),
  node: nodeOption,
  ca: caOption,
  json: flag('One JSON object per line: stream, number, type, written'),
};
