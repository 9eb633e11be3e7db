import { indent, jsonString } from './json-text.ts';
import { escapeName } from './links.ts';
import type { Representation } from './negotiate.ts';

/** The description document of a stream (http-api.md 2.12); only for those who ask for its media type. */
export function descriptionText(stream: string, asked: Representation): string {
  const family = asked.mediaType.includes('.kurrent.') ? 'kurrent' : 'eventstore';
  const link = (types: readonly string[]): string => {
    const list = types.map((type) => `${indent(4)}"${type}"`).join(',');
    return `{${indent(3)}"href": "/streams/${escapeName(stream)}",${indent(3)}"supportedContentTypes": [${list}${indent(3)}]${indent(2)}}`;
  };
  return `{\n  "title": ${jsonString(`Description document for '${stream}'`)},\n` +
    '  "description": "The description document will be presented when no accept header is present or it was requested",\n' +
    `  "_links": {\n    "self": ${link([asked.mediaType])},\n` +
    `    "stream": ${link([`application/vnd.${family}.atom+json`, 'application/json', 'application/x-ndjson', 'text/event-stream'])},\n` +
    '    "streamSubscription": null\n  }\n}';
}
