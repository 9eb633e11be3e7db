import { render } from 'preact';

render(<h1>Skua</h1>, document.body);
