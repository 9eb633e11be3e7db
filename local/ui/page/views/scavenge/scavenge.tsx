export default function Scavenge() { return <p>soon</p>; }
