const R=require('jasmine-reporters'); module.exports=class extends R.JUnitXmlReporter{constructor(){super({savePath:'.',filePrefix:'junit',consolidateAll:true})}};
