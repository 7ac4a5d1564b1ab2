import { Component, OnInit } from '@angular/core';

@Component({
  selector: 'app-length-converter',
  templateUrl: './length-converter.component.html',
})
export class LengthConverterComponent implements OnInit {
  ngOnInit(): void {}
}
