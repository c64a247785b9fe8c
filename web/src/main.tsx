import { render } from "preact";
import { App } from "./app";
import "./app.css";
import { begin } from "./store/library";

begin();
render(<App />, document.getElementById("app")!);
